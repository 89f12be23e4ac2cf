"""A real browser, without a display: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import base64
import io
import shutil

import matplotlib.image
import pytest

# WebGL in software: no graphics card is needed.
ARGUMENTS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


@pytest.fixture(scope="session")
def chromium():
    """A browser."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: `make setup`"
    )
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no `chromium`: `make browser` installs it")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def look():
    """The 3-D part of a page as an image, (rows, columns, 3), white where nothing is drawn.

    Screenshots wait for a quiet moment, which a page in motion does not have. So the picture is copied within the
    frame that drew it; a frame in which nothing had to be drawn leaves none, then the next is taken.
    """
    script = """() => new Promise(done => {
        const copy = document.createElement("canvas");
        let tries = 0;
        const take = () => {
            const all = [...document.querySelectorAll("canvas")];
            const canvas = all.sort((a, b) => b.width * b.height - a.width * a.height)[0];
            copy.width = canvas.width; copy.height = canvas.height;
            const context = copy.getContext("2d");
            context.clearRect(0, 0, copy.width, copy.height);
            context.drawImage(canvas, 0, 0);
            const data = context.getImageData(0, 0, copy.width, copy.height).data;
            let drawn = false;
            for (let i = 3; i < data.length; i += 4) if (data[i]) { drawn = true; break; }
            if (drawn || ++tries > 60) done(copy.toDataURL("image/png"));
            else requestAnimationFrame(take);
        };
        requestAnimationFrame(() => requestAnimationFrame(take));
    })"""

    def grab(page):
        data = base64.b64decode(page.evaluate(script).split(",", 1)[1])
        image = matplotlib.image.imread(io.BytesIO(data))
        return image[..., :3] * image[..., 3:] + 1 - image[..., 3:]

    return grab
