"""Make every picture of README.md and docs/ anew: python docs/make_pictures.py"""

import io
import os
import re
import runpy
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
from PIL import Image

import pliant
from pliant.viewer import picture

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "pictures"
GRAVITY = (0, 0, -9.81)
SIDE = (10, -75)
# name, arguments, forces (None: the reference pose), gravity, view
CASES = [
    ("helix", {}, {"link50": (60, 0, -80)}, None, (20, -60)),
    ("ladder", {"form": "cells", "rungs": 8}, {"rung8": (200, 0, 0)}, None, SIDE),
    ("y", {}, {"left10": (0, 60, 0), "right10": (0, -60, 0)}, None, (20, -60)),
    ("loop", {}, {"plate": (0, 150, -100)}, None, (15, -70)),
    ("two_link", {}, {"right": (500, 0, 0)}, None, SIDE),
    ("arm", {}, {"index_tip": (0, 0, -100)}, None, (20, -60)),
    ("hand", {}, {"index_tip": (0, 0, 10), "thumb_tip": (0, 0, 10)}, None, (30, -120)),
    ("gripper", {}, {"left_pad": (-60, 0, 0), "right_pad": (60, 0, 0)}, None, (12, -75)),
    ("flexure_stage", {}, {"stage": (40, 0, 0)}, None, SIDE),
    ("suspension", {}, {"upright": (0, 0, 2000)}, None, (12, -160)),
    ("hexapod", {}, None, None, (20, -60)),
    ("firefighters", {}, {"trampoline": (0, 0, -500)}, None, (14, -70)),
    ("scissor_lift", {}, {"platform": (0, 0, -150)}, None, (14, -65)),
    ("stewart_platform", {}, {"platform": (1500, 0, 0, 0, 0, 150)}, None, (18, -60)),
    ("delta_robot", {}, {"platform": (25, 10, 15)}, None, (6, -75)),
    ("bistable", {}, {"shuttle": (0, 0, -4)}, None, SIDE),
    ("miura_ori", {"rows": 6, "columns": 6}, {"facet6_6": (0, -2, 0)}, None, (50, -50)),
    ("tensegrity", {}, {"bar1": (0, 0, -120)}, (0, 0, 0), (18, -60)),
    ("lattice", {"form": "auxetic"}, {"square8_8": (0, 0, -200)}, None, SIDE),
    ("lattice3d", {}, {"node3_3_3": (15, 5, 0)}, None, (18, -60)),
    ("trampoline_net", {}, {"knot4_4": (0, 0, -400)}, (0, 0, 0), (25, -60)),
    ("bicycle_chain", {}, {"link30": (0, 0, -10)}, None, SIDE),
    ("millipede", {"legs": 40, "spine": 120}, {"spine119": (0, 5, 15)}, None, (35, -60)),
    ("molecule", {"links": 300}, None, None, (20, -60)),
    (
        "forest",
        {"plants": 12},
        {"plant1_trunk6": (18, -18, 0), "plant7_trunk6": (18, -18, 0)},
        None,
        (14, -70),
    ),
    ("cable", {"kind": "ball"}, {"load": (300, 0, 0)}, GRAVITY, SIDE),
    ("crane", {}, None, None, (12, -70)),
    ("strong_robot", {}, {"tank": (3000, 0, 0)}, None, (14, -70)),
]


def _palette(image: Image.Image, path: Path) -> None:
    """Save a picture with 96 colours: they are not seen, and halve the file."""
    image.convert("RGB").quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)


def gallery() -> None:
    """One picture for every mechanism of the gallery; the huge ones as small specimens."""
    for name, arguments, forces, gravity, view in CASES:
        mechanism = pliant.gallery.make(name, **arguments)
        shown = mechanism if forces is None else pliant.equilibrium(mechanism, forces, gravity=gravity)
        path = OUT / f"{name}.png"
        picture(shown, path, view=view, size=(560, 420))
        _palette(Image.open(path), path)
    missing = set(pliant.gallery.names()) - {case[0] for case in CASES}
    if missing:
        raise SystemExit(f"no picture of {', '.join(sorted(missing))}: add it to CASES")


def readme() -> None:
    """The picture that the first Python block of the README makes, and those of examples."""
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert code is not None
    with tempfile.TemporaryDirectory() as folder:
        start = Path.cwd()
        os.chdir(folder)
        try:
            exec(code.group(1), {})
            for script in (
                "01_equilibrium.py",
                "09_crane.py",
                "11_huge_linkages.py",
                "16_paths.py",
                "17_lattice.py",
                "19_workspace.py",
                "22_protein.py",
                "23_forest.py",
                "24_adaptive.py",
            ):
                runpy.run_path(str(ROOT / "examples" / script), run_name="__main__")
        finally:
            os.chdir(start)
        for made, name in (
            ("hand.png", "readme"),
            ("out/equilibrium.png", "equilibrium"),
            ("out/crane.png", "boom_drop"),
            ("out/pulled.png", "pulled"),
            ("out/adaptive.png", "adaptive"),
            ("out/snap-through.png", "snap_through"),
            ("out/paths.png", "paths"),
            ("out/lattice.png", "lattices"),
            ("out/workspace.png", "workspace"),
            ("out/protein.png", "protein"),
            ("out/forest.png", "forest_in_wind"),
        ):
            _palette(Image.open(Path(folder) / made), OUT / f"{name}.png")


@contextmanager
def _looking(what: Any, path: Path, rows: int, levels: int) -> Iterator[tuple[Any, Any]]:
    """The live view in Chromium, without a display: (view, page). Its upper rows are a picture in the end."""
    from playwright.sync_api import sync_playwright

    software = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with (
        pliant.view(what, port=0, block=False) as shown,
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=shutil.which("chromium"), args=software) as browser,
    ):
        page = browser.new_page(viewport={"width": 1100, "height": 700})
        page.set_default_timeout(120_000)
        page.goto(shown.url)
        page.get_by_role("alert").get_by_role("button").click()  # that there is no graphics card
        yield shown, page
        page.wait_for_timeout(8000)
        raw = page.screenshot()
    image = matplotlib.image.imread(io.BytesIO(raw))[:rows, :, :3]
    matplotlib.image.imsave(path, np.round(image * levels) / levels)


def viewer() -> None:
    """The live view, with a finger pulled and its ellipsoid shown."""
    with _looking(pliant.gallery.hand(), OUT / "viewer.png", 700, 31) as (shown, page):
        session, ask = shown.session, shown.runner.ask
        page.get_by_role("checkbox", name="Ellipsoid").check()
        tip = ask(lambda: session.simulation.pose("index_tip")[:3, 3])
        ask(lambda: session.pull("picture", "index_tip", tip, tip + np.array([0.0, 0.01, 0.06])))
        page.get_by_text("Stiffness of").wait_for()
        page.wait_for_timeout(3000)
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="Play").wait_for()


def world_view() -> None:
    """A world in the live view: a hand that holds a ball, seen through."""
    with _looking(pliant.scenes.grasp(), OUT / "world_view.png", 620, 23) as (shown, page):
        session, ask = shown.session, shown.runner.ask
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("checkbox", name="See through").check()
        ask(session.reset)
        ask(lambda: session.step(96))
        page.mouse.move(300, 650)


def adaptive_view() -> None:
    """What moves in a soft molecule in the live view, pulled at its last bond."""
    soft = pliant.gallery.molecule(2000).with_stiffness("*", 1e-3, 5e-6)
    simulation = pliant.AdaptiveSimulation(soft, 1 / 240, (0, 0, 0))
    with _looking(simulation, OUT / "adaptive_view.png", 540, 15) as (shown, page):
        session, ask = shown.session, shown.runner.ask
        page.get_by_role("button", name="Pause").click()
        ask(session.reset)
        start = ask(lambda: session.pose("bond2000")[:3, 3])
        ask(lambda: session.pull("picture", "bond2000", start, start + np.array([0, 0, 0.05])))
        ask(lambda: session.step(120))
        page.mouse.move(300, 650)


if __name__ == "__main__":
    gallery()
    readme()
    viewer()
    world_view()
    adaptive_view()
    size = sum(file.stat().st_size for file in OUT.glob("*.png"))
    print(f"{len(list(OUT.glob('*.png')))} pictures, {size / 1e6:.2f} MB in {OUT}")
