"""Real model files: where they are, and each as a mechanism that springs hold at rest in its reference pose.

Files of MuJoCo Menagerie are read from the folder `shared/models` beside the project, others from wheels that the tests
install. A file that is not there is an error that says where it was looked for.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import pliant
from pliant.errors import PliantWarning

__all__ = ["MODELS", "relaxed"]

MENAGERIE = Path(__file__).resolve().parents[3] / "shared" / "models"
Springs = Mapping[str, tuple[float, float]]  # stiffness and damping by pattern of joint names


def relaxed(m: pliant.Mechanism) -> pliant.Mechanism:
    """The mechanism with springs and tendons that exert no force at its reference pose."""
    return m.replace(rest=m.reference.copy(), tendon_rest=m.tendons.sums(m.reference[m.dof_coordinate]))


def _read(root: Path, name: str, keyframe: str | None = None) -> pliant.Mechanism:
    """Mechanism of a file."""
    if not (root / name).is_file():
        raise FileNotFoundError(f"no file {name} in {root.name}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PliantWarning)
        return pliant.load(root / name, allow=[root], keyframe=keyframe)


def _held(m: pliant.Mechanism, end: str, springs: Springs) -> pliant.Mechanism:
    """The mechanism with one end effector, and springs at joints that the file leaves to motors."""
    for pattern, (stiffness, damping) in springs.items():
        m = m.with_stiffness(pattern, stiffness, damping)
    return relaxed(m).with_end_effectors(end)


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"the wheel {name} is not installed (`make setup`)")
    return Path(spec.submodule_search_locations[0])


def _example_robot_data() -> Path:
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        raise FileNotFoundError("the wheel example-robot-data is not installed (`make setup`)") from None
    return Path(str(next(f for f in files if f.name == "package.xml").locate())).resolve().parent


def _robotiq() -> pliant.Mechanism:
    return _held(_read(MENAGERIE, "robotiq_2f85/2f85.xml"), "left_pad", {})


def _cassie(keyframe: str | None) -> pliant.Mechanism:
    springs = {"*-hip-*": (500.0, 5.0), "*-knee": (500.0, 5.0), "*-foot": (100.0, 1.0)}
    m = _read(MENAGERIE, "agility_cassie/cassie.xml", keyframe).with_fixed_base()
    return _held(m, "left-foot", springs)


def _panda() -> pliant.Mechanism:
    m = _read(_example_robot_data(), "robots/panda_description/urdf/panda.urdf")
    m = m.with_pose({"panda_joint2": -0.5, "panda_joint4": -2.0, "panda_joint6": 1.5})
    springs = {"panda_joint?": (200.0, 4.0), "panda_finger_joint?": (2000.0, 20.0)}
    return _held(m, "panda_hand", springs)


def _fetch() -> pliant.Mechanism:
    """Arm whose gripper a weld holds in place: its elbow moves."""
    m = _read(_package("gymnasium_robotics"), "envs/assets/fetch/reach.xml")
    return _held(m, "robot0:elbow_flex_link", dict.fromkeys(m.springless, (1000.0, 10.0)))


MODELS: dict[str, Callable[[], pliant.Mechanism]] = {
    "Robotiq 2F-85": _robotiq,
    "Cassie's foot": lambda: _cassie("home"),
    "Cassie's foot, legs straight": lambda: _cassie(None),
    "Panda arm": _panda,
    "Fetch's elbow": _fetch,
}
