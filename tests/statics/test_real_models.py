"""Real robots at rest: MuJoCo, on the original file, finds the forces in balance where pliant does."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

import pliant

MODELS = Path(__file__).parents[3] / "shared" / "models"
GRAVITY = (0.0, 0.0, -9.81)

pytestmark = [
    pytest.mark.skipif(not MODELS.is_dir(), reason="the folder shared/models is not beside the project"),
    pytest.mark.filterwarnings("ignore::pliant.errors.UnsupportedWarning"),
]


def unbalanced(path, edited, c, wrenches, keyframe=None):
    """Largest generalised force MuJoCo leaves unbalanced at the configuration `c`, loops' reactions taken out.

    `edited` gives joints the stiffness that was added to the loaded file; a base that was fixed is held.
    """
    model = mujoco.MjModel.from_xml_path(str(path))
    off = mujoco.mjtDisableBit
    for bit in (off.mjDSBL_CONTACT, off.mjDSBL_LIMIT, off.mjDSBL_FRICTIONLOSS):
        model.opt.disableflags |= int(bit)
    data = mujoco.MjData(model)
    if keyframe is not None:
        mujoco.mj_resetDataKeyframe(model, data, model.key(keyframe).id)
    held = np.zeros(model.nv, dtype=bool)
    for j in range(model.njnt):
        name = model.joint(j).name
        address = model.jnt_qposadr[j]
        if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE:
            held[model.jnt_dofadr[j] : model.jnt_dofadr[j] + 6] = True
            continue
        value = np.atleast_1d(c[name])
        data.qpos[address : address + len(value)] = value
        if name in edited:
            model.jnt_stiffness[j] += edited[name]
            model.qpos_spring[address] = model.qpos0[address]
    for body, force in wrenches.items():
        i = model.body(body).id
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        data.xfrc_applied[i] = [*force, *np.cross(data.xpos[i] - data.xipos[i], force)]
    mujoco.mj_forward(model, data)
    force = data.qfrc_smooth.copy()
    rows = np.zeros((data.nefc, model.nv))
    if data.nefc:
        rows = (
            data.efc_J.reshape(data.nefc, -1)
            if data.efc_J.size == data.nefc * model.nv
            else dense_rows(model, data)
        )
    force, rows = force[~held], rows[:, ~held]
    if len(rows):
        force = force - rows.T @ np.linalg.lstsq(rows.T, force, rcond=1e-9)[0]
    return np.abs(force).max()


def dense_rows(model, data):
    rows = np.zeros((data.nefc, model.nv))
    for r in range(data.nefc):
        part = slice(data.efc_J_rowadr[r], data.efc_J_rowadr[r] + data.efc_J_rownnz[r])
        rows[r, data.efc_J_colind[part]] = data.efc_J[part]
    return rows


def springs(m, values):
    """Give joints stiffness by pattern; returns the mechanism and what each joint got."""
    before = m.stiffness
    for pattern, value in values.items():
        m = m.with_stiffness(pattern, value)
    changed = np.flatnonzero(m.stiffness != before)
    m = (
        m.with_rest([m.dof_names[d] for d in changed], m.reference[m.dof_coordinate[changed]])
        if len(changed)
        else m
    )
    return m, {m.dof_names[d]: m.stiffness[d] for d in changed}


def test_gripper_with_loops_and_a_servo_through_a_tendon():
    path = MODELS / "robotiq_2f85" / "2f85.xml"
    m = pliant.load(path)
    assert m.topology.loops == 2
    assert len(m.tendons) == 1
    assert len(m.couplings) == 1
    wrenches = {"left_pad": (1.0, 0.5, -2.0)}
    c = pliant.equilibrium(m, wrenches, gravity=GRAVITY)
    assert c.residual < 1e-9
    assert np.abs(c.loop_residual).max() < 1e-10
    assert unbalanced(path, {}, c, wrenches) < 1e-8


def test_hand_with_coupled_distal_joints():
    path = MODELS / "shadow_hand" / "right_hand.xml"
    m, given = springs(pliant.load(path), {"rh_[FMRL]FJ[12]": 0.5})
    wrenches = {"rh_ffdistal": (0.3, -0.5, 0.2), "rh_thdistal": (0.0, 0.3, 0.3)}
    c = pliant.equilibrium(m, wrenches, gravity=GRAVITY)
    assert c.residual < 1e-9
    assert c.displacement.max() > 0.005
    assert unbalanced(path, given, c, wrenches) < 1e-8


def test_quadruped_on_a_stand():
    path = MODELS / "google_barkour_vb" / "barkour_vb.xml"
    m = pliant.load(path).with_fixed_base()
    wrenches = {"lower_leg_front_left": (5.0, 0.0, 20.0)}
    c = pliant.equilibrium(m, wrenches, gravity=GRAVITY)
    assert c.stability == "stable"
    assert c.residual < 1e-9
    assert unbalanced(path, {}, c, wrenches) < 1e-8


def test_free_quadruped_says_what_is_loose():
    m = pliant.load(MODELS / "google_barkour_vb" / "barkour_vb.xml")
    with pytest.raises(pliant.errors.ConvergenceError, match="drives 'torso', which floats: hold it with"):
        pliant.equilibrium(m, {"lower_leg_front_left": (5.0, 0.0, 20.0)})


@pytest.mark.parametrize("keyframe", [None, "home"])
def test_legs_with_four_loops(keyframe):
    path = MODELS / "agility_cassie" / "cassie.xml"
    m = pliant.load(path, keyframe=keyframe).with_fixed_base()
    assert m.topology.loops == 4
    m, given = springs(m, {"*-hip-*": 500.0, "*-knee": 500.0, "left-foot": 100.0, "right-foot": 100.0})
    assert np.abs(pliant.Configuration(m).loop_residual).max() < 1e-12
    wrenches = {"left-foot": (0.0, 20.0, 100.0)}
    c = pliant.equilibrium(m, wrenches, gravity=GRAVITY)
    assert c.residual < 1e-9
    assert np.abs(c.loop_residual).max() < 1e-10
    if keyframe is None:  # the test gives MuJoCo the same springs only where their rest is the file's own
        assert unbalanced(path, given, c, wrenches) < 1e-6
