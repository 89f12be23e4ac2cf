"""Grasps as an output, against Coulomb's law."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant.errors import InputError, PliantError
from pliant.study.outputs import Situation, parse_outputs

SQUEEZE = {"left_pad": ["grip", 0, 0], "right_pad": ["-grip", 0, 0]}
GRASP = {"grasp": "sphere", "size": "size", "mass": "mass", "friction": "friction", "wrench": SQUEEZE}
USUAL = {"grip": 60.0, "size": 0.025, "mass": 0.2, "friction": 0.5}
G = 9.81


def lean(size, bar=0.06):
    """Angle of the bars from the vertical when both pads are at a ball of that radius between them."""
    way = 0.0125 + (bar + 0.06) / 2 * np.sin(np.radians(20)) - 0.004 - size
    return np.arcsin(np.sin(np.radians(20)) - way / bar)


def grasp(m=None, *, values=USUAL, **options):
    """The three numbers of one grasp."""
    (output,) = parse_outputs({"held": {**GRASP, **options}}, list(values))
    found = output.compute(Situation(m or pliant.gallery.gripper(), values, 0))
    assert list(found) == ["held.success", "held.slip", "held.squeeze"]
    return list(found.values())


def test_many_grasps_obey_coulombs_law(make):
    """Friction carries weight and shaking together, or the ball is lost; bars and servos differ too."""
    study = make(
        mechanism="gallery:gripper",
        parameters={
            "grip": {"loguniform": [20, 80]},
            "friction": {"uniform": [0.05, 0.8]},
            "mass": {"loguniform": [0.05, 1]},
            "size": {"uniform": [0.015, 0.027]},
            "bar": {"argument": "driver", "uniform": [0.05, 0.08]},
            "servo": {"stiffness": "*_driver", "uniform": [5, 20]},
            "z": {"uniform": [-0.01, 0.01]},
        },
        outputs={"held": {**GRASP, "offset": [0, 0, "z"], "shake": 3.0}},
        samples=24,
        sampling="sobol",
        seed=1,
    )
    column = study.run(workers=0).columns
    mu = column["friction"]
    opens = 1 + mu * np.tan(lean(column["size"], column["bar"]))
    carried = mu * column["held.squeeze"] / opens / (column["mass"] * (G + 3.0))
    sure = np.abs(carried - 1) > 0.05
    assert sure.sum() >= 22
    held = column["held.success"][sure]
    assert 4 < held.sum() < 20
    np.testing.assert_array_equal(held == 1, carried[sure] > 1)
    assert (column["held.slip"][column["held.success"] == 1] < 1e-3).all()
    assert (column["held.slip"] > column["size"])[column["held.success"] == 0].all()


@pytest.mark.parametrize("engine", ["reduced", "constrained"])
def test_the_limit_of_shaking(engine):
    """Pushed downwards, friction must carry mass (g + a), which drags the pads down and so opens the bars."""
    success, slip, squeeze = grasp(engine=engine, seconds=0.3)
    assert success == 1
    assert slip < 1e-4
    mu, mass = USUAL["friction"], USUAL["mass"]
    most = mu * squeeze / (1 + mu * np.tan(lean(USUAL["size"]))) / mass - G
    assert most > 5
    assert grasp(engine=engine, shake=0.95 * most)[0] == 1
    assert grasp(engine=engine, shake=1.05 * most)[0] == 0


@pytest.mark.parametrize(("engine", "within"), [("reduced", 0.03), ("constrained", 1e-3)])
def test_squeeze_is_what_servos_leave_over(engine, within):
    """A driver that turns by an angle a to lean by b takes k a / (L cos b) of the force on its pad."""
    k, at = 5.0, lean(USUAL["size"])
    m = pliant.gallery.gripper().with_stiffness("*_driver", k)
    taken = k * (np.radians(20) - at) / (0.06 * np.cos(at))
    _, _, squeeze = grasp(m, engine=engine, gravity=False, values={**USUAL, "friction": 0.0}, seconds=0.1)
    assert squeeze == pytest.approx(2 * (USUAL["grip"] - taken), rel=within)


def test_things_of_other_shapes_and_places():
    assert grasp(size=[0.025, 0.01, 0.02], grasp="box")[0] == 1
    assert grasp(size=[0.025, 0.02], grasp="cylinder")[0] == 1
    assert grasp(offset=[0, 0.02, 0], seconds=0.3)[0] == 0  # beside the pads
    with pytest.raises(PliantError, match="'object'"):
        grasp(values={**USUAL, "size": 0.04})  # inside the pads from the start


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"grasp": "bal"}, "grasp takes the shape of the object"),
        ({"size": None}, "'size' is missing"),
        ({"size": [0.01, 0.02]}, "size: 1 numbers or parameters expected"),
        ({"size": "siz"}, "size: no parameter 'siz'; did you mean 'size'"),
        ({"mass": True}, "mass: a finite number expected"),
        ({"wrench": {}}, "say what closes the fingers"),
        ({"wrench": {"left_pad": ["-gripp", 0, 0]}}, "no parameter '-gripp'; did you mean 'grip'"),
        ({"engine": "quasistatic"}, "engine: unknown 'quasistatic'"),
        ({"seconds": 0}, "seconds: a number above 0 expected"),
        ({"sizes": 1}, "unknown key 'sizes'; did you mean 'size'"),
    ],
)
def test_grasps_that_are_refused(change, says):
    given = {key: value for key, value in {**GRASP, **change}.items() if value is not None}
    with pytest.raises(InputError, match=f"output 'held': .*{says}"):
        parse_outputs({"held": given}, list(USUAL))
