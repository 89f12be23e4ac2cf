"""The compliance of real hands, grippers, arms and legged robots equals the one made from MuJoCo's own data."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import pliant
from formats import corpus
from oracles import mujoco_compliance
from pliant.mechanism import kinematics
from pliant.mechanism.joints import SLIDE

STIFFNESS = 10.0  # of dofs that no file gives a spring, N m/rad or N/m
MOST_BODIES = 6

DM, GYM, ERD, SHARED = "dm_control", "gymnasium_robotics", "example-robot-data", "shared"
MODELS: dict[str, dict[str, list[str]]] = {
    "hand": {
        DM: ["third_party/kinova/jaco_hand.xml"],
        GYM: [
            "envs/assets/adroit_hand/adroit_door.xml",
            "envs/assets/adroit_hand/adroit_hammer.xml",
            "envs/assets/adroit_hand/adroit_pen.xml",
            "envs/assets/adroit_hand/adroit_relocate.xml",
            "envs/assets/hand/manipulate_block.xml",
            "envs/assets/hand/manipulate_egg.xml",
            "envs/assets/hand/manipulate_pen.xml",
            "envs/assets/hand/reach.xml",
        ],
        ERD: [
            "robots/allegro_hand_description/urdf/allegro_left_hand.urdf",
            "robots/allegro_hand_description/urdf/allegro_right_hand.urdf",
            "robots/finger_edu_description/robots/finger_edu.urdf",
        ],
        SHARED: ["shadow_hand/left_hand.xml", "shadow_hand/right_hand.xml", "shadow_hand/scene_right.xml"],
    },
    "gripper": {  # with loops: the fetches, welded to a fixed body, and the 2f85
        DM: ["suite/manipulator.xml", "suite/stacker.xml"],
        GYM: [
            "envs/assets/fetch/pick_and_place.xml",
            "envs/assets/fetch/push.xml",
            "envs/assets/fetch/reach.xml",
            "envs/assets/fetch/slide.xml",
        ],
        SHARED: ["robotiq_2f85/2f85.xml", "robotiq_2f85/scene.xml"],
    },
    "arm": {
        DM: [
            "mjcf/test_assets/robot_arm.xml",
            "mujoco/testing/assets/arm.xml",
            "third_party/kinova/jaco_arm.xml",
        ],
        GYM: [
            "envs/assets/kitchen_franka/kitchen_assets/kitchen_env_model.xml",
            "envs/mujoco/assets/pusher.xml",
            "envs/mujoco/assets/reacher.xml",
        ],
        ERD: [
            "robots/baxter_description/urdf/baxter.urdf",
            "robots/borinot_description/urdf/borinot_flying_arm_2.urdf",
            "robots/hextilt_description/urdf/hextilt_flying_arm_5.urdf",
            "robots/kinova_description/robots/kinova.urdf",
            "robots/panda_description/urdf/panda.urdf",
            "robots/pr2_description/urdf/pr2.urdf",
            "robots/so_arm_description/urdf/so100.urdf",
            "robots/so_arm_description/urdf/so101.urdf",
            "robots/talos_data/robots/talos_left_arm.urdf",
            "robots/tiago_description/robots/tiago.urdf",
            "robots/tiago_description/robots/tiago_dual.urdf",
            "robots/tiago_description/robots/tiago_no_hand.urdf",
            "robots/tiago_pro_description/robots/tiago_pro.urdf",
            "robots/ur_description/urdf/ur10_robot.urdf",
            "robots/ur_description/urdf/ur3_gripper.urdf",
            "robots/ur_description/urdf/ur5_robot.urdf",
            "robots/xarm_description/urdf/xarm7.urdf",
            "robots/z1_description/urdf/z1.urdf",
        ],
    },
    "legs": {
        DM: [
            "locomotion/walkers/assets/rodent.xml",
            "suite/cheetah.xml",
            "suite/dog.xml",
            "suite/hopper.xml",
            "suite/quadruped.xml",
            "suite/walker.xml",
            "third_party/ant/ant.xml",
        ],
        GYM: [
            "envs/mujoco/assets/ant.xml",
            "envs/mujoco/assets/half_cheetah.xml",
            "envs/mujoco/assets/hopper.xml",
            "envs/mujoco/assets/walker2d.xml",
        ],
        ERD: [
            "robots/a1_description/urdf/a1.urdf",
            "robots/anymal_b_simple_description/robots/anymal-kinova.urdf",
            "robots/anymal_b_simple_description/robots/anymal.urdf",
            "robots/anymal_c_simple_description/urdf/anymal.urdf",
            "robots/b1_description/urdf/b1-z1.urdf",
            "robots/b1_description/urdf/b1.urdf",
            "robots/bolt_description/robots/bolt.urdf",
            "robots/go1_description/urdf/go1.urdf",
            "robots/go2_description/urdf/go2.urdf",
            "robots/hyq_description/robots/hyq_no_sensors.urdf",
            "robots/laikago_description/urdf/laikago.urdf",
            "robots/quadruped_description/urdf/quadruped.urdf",
            "robots/solo_description/robots/solo.urdf",
            "robots/solo_description/robots/solo12.urdf",
        ],
        SHARED: [
            "agility_cassie/cassie.xml",
            "google_barkour_vb/barkour_vb.xml",
            "google_barkour_vb/barkour_vb_mjx.xml",
            "google_barkour_vb/barkour_vb_rev_1_0_head_straight.urdf",
        ],
    },
    "humanoid": {
        DM: [
            "locomotion/walkers/assets/humanoid_CMU_V2020.xml",
            "suite/humanoid.xml",
            "suite/humanoid_CMU.xml",
        ],
        GYM: ["envs/mujoco/assets/humanoid.xml", "envs/mujoco/assets/humanoidstandup.xml"],
        ERD: [
            "robots/alex_description/urdf/alex_nub_hands.urdf",
            "robots/alex_description/urdf/alex_psyonic_hands.urdf",
            "robots/alex_description/urdf/alex_sake_hands.urdf",
            "robots/alexander_description/urdf/alexander_v1.lowerBodyOnly.urdf",
            "robots/centauro_description/urdf/centauro.urdf",
            "robots/g1_description/urdf/g1_29dof_rev_1_0.urdf",
            "robots/icub_description/robots/icub.urdf",
            "robots/romeo_description/urdf/romeo_small.urdf",
            "robots/simple_humanoid_description/urdf/simple_humanoid.urdf",
            "robots/talos_data/robots/talos_full_v2.urdf",
            "robots/talos_data/robots/talos_reduced.urdf",
        ],
    },
}
CASES = [(wheel, name) for group in MODELS.values() for wheel, names in group.items() for name in names]
# pliant warns that it leaves these springs out.
SPATIAL_TENDON = ("envs/multiagent_mujoco/assets/coupled_half_cheetah.xml",)

pytestmark = [
    pytest.mark.filterwarnings("ignore::pliant.errors.UnsupportedWarning"),
    pytest.mark.filterwarnings("ignore::pliant.errors.RepairedWarning"),
]


def unsprung(m: pliant.Mechanism) -> list[str]:
    """Dofs that no spring, tendon or coupling holds, as the oracle counts them: loops hold none."""
    held = m.stiffness > 0
    rows = np.concatenate([m.tendons.dense(m.nv)[m.tendon_stiffness > 0], m.couplings.dense(m.nv)])
    tied = np.flatnonzero(~held & rows.any(axis=0))
    if len(tied):
        _, size, directions = np.linalg.svd(rows[:, tied])
        held[tied] = (np.abs(directions[int((size > 1e-9 * size[0]).sum()) :]) < 1e-9).all(axis=0)
    for joint in m.topology.chords.tolist():
        held[m.joint_dofs(joint)] |= not held[m.joint_dofs(joint)].any()
    return [name for name, has in zip(m.dof_names, held.tolist(), strict=True) if not has]


def compliance(m: pliant.Mechanism, bodies: list[str]) -> np.ndarray:
    names = unsprung(m)
    return pliant.reduce(m.with_stiffness(names, STIFFNESS) if names else m, bodies).compliance


def tips(m: pliant.Mechanism) -> list[str]:
    """End effectors, each the one moved by most joints that do not move those before it: every finger or foot once."""
    c = pliant.Configuration(m)
    moved_by = {body: c.jacobian(body).any(axis=0) for body in m.end_effectors}
    chosen: list[str] = []
    left = np.ones(m.nv, dtype=bool)
    while len(chosen) < MOST_BODIES:
        body = max(moved_by, key=lambda name: (moved_by[name] & left).sum())
        if not (moved_by[body] & left).any():
            break
        chosen.append(body)
        left &= ~moved_by[body]
    return chosen


def bent(m: pliant.Mechanism) -> pliant.Mechanism:
    """Another pose: at the one of the file axes are parallel and half of all entries zero."""
    size = np.where(m.dof_kind == SLIDE, m.radius, 1.0) * (0.1 if m.topology.loops else 0.5)
    step = size * np.random.default_rng(0).uniform(-1, 1, size=m.nv)
    return pliant.assemble(m, kinematics.move(m, m.reference.copy(), step))


def load(wheel: str, name: str) -> tuple[pliant.Mechanism, mujoco.MjModel]:
    root = corpus.folder(wheel)
    if not root.is_dir():
        pytest.skip("the folder shared/models is not beside the project")
    m = pliant.load(root / name, allow=[root], repair=name in corpus.EXPECTED[wheel][1])
    model = mujoco_compliance.read(root / name)
    return m, model


def check(m: pliant.Mechanism, model: mujoco.MjModel) -> None:
    q = m.reference[: model.nq]  # loop-closing joints come after those MuJoCo has
    m = m.with_fixed_base() if "free" in m.joint_types else m
    bodies = tips(m)
    assert bodies
    ours = compliance(m, bodies)
    theirs = mujoco_compliance.compliance(model, q, [m.body_index(body) + 1 for body in bodies], STIFFNESS)
    # Lengths in radii, comparable with radians; and pair by pair, so that a soft finger does not hide a stiff one.
    unit = np.tile(np.repeat([1 / m.radius, 1.0], 3), len(bodies))
    pairs = (len(bodies), 6, len(bodies), 6)
    error, size = (
        np.abs(unit[:, None] * x * unit).reshape(pairs).max(axis=(1, 3)) for x in (ours - theirs, theirs)
    )
    assert size.max() > 0
    own = size.diagonal()
    # A body that loops hold still has a compliance of rounding errors only.
    worst = (error / (np.sqrt(own[:, None] * own) + 1e-6 * size.max())).max()
    assert worst < 1e-8


@pytest.mark.parametrize(("wheel", "name"), CASES, ids=[name for _, name in CASES])
def test_equals_mujoco(wheel, name):
    m, model = load(wheel, name)
    check(m, model)
    check(bent(m), model)


@pytest.mark.slow
@pytest.mark.parametrize("wheel", corpus.EXPECTED)
def test_every_other_model_equals_mujoco(wheel):
    root = corpus.folder(wheel)
    checked = 0
    for file in corpus.files(wheel):
        name = file.relative_to(root).as_posix()
        if (wheel, name) in CASES or name in SPATIAL_TENDON:
            continue
        try:
            m, model = load(wheel, name)
        except pliant.errors.PliantError:
            assert name in corpus.EXPECTED[wheel][1]
            continue
        if m.nv:
            check(m, model)
            check(bent(m), model)
            checked += 1
    assert checked or not root.is_dir()
