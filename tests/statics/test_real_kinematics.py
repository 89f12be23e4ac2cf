"""Poses, Jacobians and mass matrices of real robots equal MuJoCo's, at random configurations."""

import mujoco
import numpy as np
import pytest

import pliant
from formats import corpus
from pliant.mechanism import kinematics

FILES = {
    "dm_control": [
        "suite/humanoid.xml",
        "suite/dog.xml",
        "suite/quadruped.xml",
        "suite/swimmer.xml",
        "suite/fish.xml",
        "suite/cheetah.xml",
        "suite/manipulator.xml",
        "suite/humanoid_CMU.xml",
        "third_party/kinova/jaco_arm.xml",
        "third_party/ant/ant.xml",
        "locomotion/walkers/assets/rodent.xml",
    ],
    "gymnasium_robotics": [
        "envs/assets/hand/reach.xml",
        "envs/assets/fetch/reach.xml",
        "envs/assets/adroit_hand/adroit_pen.xml",
        "envs/mujoco/assets/walker2d.xml",
        "envs/mujoco/assets/humanoid.xml",
    ],
    "shared": [
        "shadow_hand/right_hand.xml",
        "agility_cassie/cassie.xml",
        "robotiq_2f85/2f85.xml",
        "google_barkour_vb/barkour_vb.xml",
    ],
}
CASES = [(wheel, name) for wheel, names in FILES.items() for name in names]


@pytest.mark.filterwarnings("ignore::pliant.errors.UnsupportedWarning")
@pytest.mark.parametrize(("wheel", "name"), CASES, ids=[name for _, name in CASES])
def test_equals_mujoco(wheel, name):
    root = corpus.folder(wheel)
    if not root.is_dir():
        pytest.skip("the folder shared/models is not beside the project")
    m = pliant.load(root / name, allow=[root])
    model = mujoco.MjModel.from_xml_path(str(root / name))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    n = model.nv  # the dofs of loop-closing joints come after those of the tree
    moving = [b for b in range(1, model.nbody) if model.body_weldid[b] != 0]
    full, linear, angular = np.zeros((n, n)), np.zeros((3, n)), np.zeros((3, n))
    for _ in range(3):
        q = kinematics.move(m, m.reference.copy(), 0.7 * rng.normal(size=m.nv))
        data.qpos[:] = q[: model.nq]
        mujoco.mj_forward(model, data)
        c = pliant.Configuration(m, q)
        size = max(1.0, m.radius, np.abs(data.xpos).max())
        assert np.abs(c.poses[:, :3, 3] - data.xpos[1:]).max() < 1e-10 * size
        assert np.abs(c.poses[:, :3, :3] - data.xmat[1:].reshape(-1, 3, 3)).max() < 1e-10
        mujoco.mj_fullM(model, data, full)
        ours = c.mass_matrix()
        assert np.abs(ours[:n, :n] - full).max() < 1e-10 * np.abs(full).max()
        assert not ours[n:].any()
        for b in rng.choice(moving, size=min(8, len(moving)), replace=False):
            mujoco.mj_jacBody(model, data, linear, angular, b)
            rows = c.jacobian(m.body_names[b - 1], frame="world")
            assert np.abs(rows[:, :n] - np.vstack([linear, angular])).max() < 1e-10 * size
            assert not rows[:, n:].any()
