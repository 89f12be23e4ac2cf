"""A hand live in the browser; what the view can do, done from Python beside it; a recording to keep.

python examples/10_view.py               # until Ctrl+C
python examples/10_view.py --seconds 60  # or for a while
"""

import argparse
import sys
from pathlib import Path

import pliant
from pliant.viewer import export_gltf, record_html

OUT = Path("out")
FINGER = "index_tip"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes any that is free")
    parser.add_argument("--seconds", type=float, help="how long; without it until Ctrl+C")
    given = parser.parse_args()
    # Where there is no terminal, nobody presses Ctrl+C.
    seconds = 2.0 if given.seconds is None and not sys.stdout.isatty() else given.seconds

    shown = pliant.view(pliant.gallery.hand(), port=given.port, block=False)
    print(f"The hand is at {shown.url}: open it in a browser and pull a finger with the mouse.")
    ask, session = (
        shown.runner.ask,
        shown.session,
    )  # the session belongs to the view's thread: ask for what you want

    # What a mouse does: pull the fingertip up by 4 cm with a spring.
    start = ask(lambda: session.simulation.pose(FINGER)[:3, 3])
    pull = ask(lambda: session.pull("example", FINGER, start, [start[0], start[1], start[2] + 0.04]))
    ask(lambda: session.step(480))
    force, gap = ask(lambda: (pull.force, session.violation))
    print(f"{FINGER} is pulled with {(force @ force) ** 0.5:.2f} N; joints violated by {1000 * gap:.2f} mm")

    # What the button "Add a model here" does.
    added = ask(session.add_model)
    ask(lambda: session.step(960))
    gap = ask(lambda: session.violation)
    print(f"with {added.models} models blended, violated by {1000 * gap:.2f} mm")
    shown.wait(seconds)
    shown.stop()

    OUT.mkdir(exist_ok=True)
    simulation = pliant.ReducedSimulation(pliant.reduce(pliant.gallery.hand()), 1 / 120)
    simulation.apply_wrench(FINGER, force=(0, 0, 4))
    motion = simulation.record(240)
    print(f"{record_html(motion, OUT / 'hand.html')} plays in any browser, without a network;")
    print(f"{export_gltf(motion, OUT / 'hand.glb')} is for Blender and others.")


if __name__ == "__main__":
    main()
