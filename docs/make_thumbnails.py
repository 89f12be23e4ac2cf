"""Make the moving thumbnails of the gallery anew: python docs/make_thumbnails.py [name ...]

`motion` is the motion of a mechanism, scene or world of the gallery: a mechanism gives way to a load and comes back, a
scene or world plays. The documentation's build writes it as a recording, to which the thumbnail leads. Thumbnails are
taken from those recordings in Chromium, without a display, and belong to the package: the live view shows them, too.
"""

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent))
from make_pictures import CASES

import pliant
from pliant.source import find_maker, gallery_names
from pliant.viewer import record_html

OUT = Path(pliant.__file__).resolve().parent / "viewer" / "thumbnails"
FRAMES, SIZE, LARGEST = 24, (240, 180), 58_000  # pixels, bytes
QUALITIES = (45, 30, 20, 12)  # of WebP, until it is small enough
SHARES = np.sin(np.linspace(0, np.pi / 2, 9)) ** 2  # of the load, from frame to frame
BEND = 2.4  # s: there and back
SECONDS = {  # of scenes and worlds
    "heavy_ball": 4.0,
    "dropped_load": 2.5,
    "slack_snap": 1.5,
    "crane_lift": 8.0,
    "boom_drop": 4.0,
    "tank": 5.0,
    "grasp": 2.5,
    "peg_in_hole": 3.0,
    "worlds.hexapod": 6.0,
    "worlds.suspension": 2.2,
    "crane_and_wall": 5.0,
    "trampoline": 4.0,
}
VIEWS = {
    "crane_lift": (12, -70),
    "crane_and_wall": (16, 115),
    "boom_drop": (12, -70),
    "tank": (14, -70),
    "dropped_load": (10, -75),
}
SIDEWAYS = np.array([0.5, 0.35, -0.8])  # where a mechanism without a load of its own is pushed
FAR = 0.25  # of the radius: how far it is pushed


def motion(name: str) -> tuple[pliant.Trajectory, tuple[float, float]]:
    """The motion of an entry of the gallery, and the view of its camera."""
    case = next((case for case in CASES if case[0] == name), None)
    if case is None:
        scene = find_maker(name)()
        steps = round(SECONDS[name] / scene.timestep)
        every = max(1, steps // FRAMES)
        return scene.record(steps // every, every), VIEWS.get(name, (20, -60))
    _, arguments, forces, gravity, view = case
    m = pliant.gallery.make(name, **arguments)
    if "free" in m.joint_types and forces is None:
        m = m.with_fixed_base()
    return _there_and_back(m, forces or _push(m), gravity), view


def _push(m: pliant.Mechanism) -> dict[str, Any]:
    """A force on the first end effector that moves it by a quarter of the radius, about."""
    body = m.end_effectors[0]
    force = SIDEWAYS / np.linalg.norm(pliant.Configuration(m).compliance(body)[:3, :3] @ SIDEWAYS)
    force *= FAR * m.radius
    while True:
        found = pliant.equilibrium(m, {body: force})
        if (
            np.linalg.norm(found.poses[:, :3, 3] - m.reference_poses[:, :3, 3], axis=1).max()
            < 2 * FAR * m.radius
        ):
            return {body: force}
        force = force / 2


def _there_and_back(m: pliant.Mechanism, forces: dict[str, Any], gravity: Any) -> pliant.Trajectory:
    """Equilibria under a load that grows and goes again."""
    found, poses, loads = None, [], []
    for share in SHARES:
        now = {body: tuple(share * np.asarray(force)) for body, force in forces.items()}
        found = pliant.equilibrium(m, now, gravity=gravity, start=found)
        poses.append(found.poses)
        ends = [(found.pose(body)[:3, 3], np.asarray(force)[:3]) for body, force in now.items()]
        loads.append(ends)
    order = [*range(len(SHARES)), *range(len(SHARES) - 2, -1, -1)]
    time = np.linspace(0, BEND, len(order))
    return pliant.Trajectory(m, time, np.array(poses)[order], np.array(loads, dtype=float)[order])


def record(name: str, path: Path) -> None:
    """Write the recording of an entry."""
    found, view = motion(name)
    title = name.removeprefix("worlds.").replace("_", " ")
    record_html(found, path, title=title, view=view)


def thumbnail(page: Any, recording: Path, path: Path) -> None:
    """Take frames of a recording in a browser and write them as an animated picture."""
    page.goto(recording.as_uri())
    page.wait_for_function("window.pliant")
    duration = float(page.evaluate("document.getElementById('time').max"))
    page.evaluate("document.getElementById('bar').remove(), document.getElementById('labels').remove()")
    page.add_style_tag(content="#caption { display: none; }")
    images = []
    for time in np.linspace(0, duration, FRAMES, endpoint=False):
        page.evaluate(f"pliant.seek({time})")
        page.wait_for_function(f"Math.abs(document.body.dataset.time - {time}) < 1e-4")
        images.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
    length = round(1000 * duration / FRAMES)
    for quality in QUALITIES:
        images[0].save(
            path, save_all=True, append_images=images[1:], duration=length, loop=0, quality=quality, method=6
        )
        if path.stat().st_size < LARGEST:
            return


def main(names: list[str]) -> None:
    from playwright.sync_api import sync_playwright

    software = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=shutil.which("chromium"), args=software) as browser,
    ):
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        page.set_default_timeout(120_000)
        for name in names or gallery_names():
            record(name, Path(folder) / f"{name}.html")
            thumbnail(page, Path(folder) / f"{name}.html", OUT / f"{name}.webp")
            size = (OUT / f"{name}.webp").stat().st_size
            print(f"{name}: {size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
