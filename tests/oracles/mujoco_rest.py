"""MuJoCo integrated until it rests: a static solution found by entirely different means."""

from __future__ import annotations

import mujoco
import numpy as np

import pliant


def rest_poses(
    m: pliant.Mechanism,
    forces: dict[str, np.ndarray],
    *,
    timestep: float = 1e-3,
    relaxation: float = 0.02,
    mass_scale: float = 1.0,
    speed: float = 1e-9,
    steps: int = 200_000,
) -> np.ndarray:
    """Body poses of `m.to_mjcf()` under dead forces at body origins, without gravity, once all motion has
    died.

    MuJoCo's loop constraints are soft: at rest they give way by an amount proportional to the square of their
    time constant. Two runs with different time constants are extrapolated to none.

    Args:
        m: the mechanism.
        forces: world forces.
        timestep: of MuJoCo, s.
        relaxation: damping is set to 1000 N m/rad times this, s.
        mass_scale: masses are multiplied by this; they do not matter at rest, but light bodies get there
            sooner.
        speed: largest joint velocity that counts as rest.
        steps: give up after so many.
    """
    model = mujoco.MjModel.from_xml_string(m.to_mjcf())
    model.opt.gravity[:] = 0
    model.opt.timestep = timestep
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICIT
    model.opt.iterations, model.opt.tolerance = 50, 1e-14
    model.dof_damping[:] = relaxation * 1000.0
    model.body_mass[:] *= mass_scale
    model.body_inertia[:] *= mass_scale
    model.eq_solimp[:, :2] = 0.9999
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)
    if not model.neq:
        return _settle(m, model, data, forces, speed, steps)
    settled = []
    for stretch in (2, 2 * np.sqrt(2)):
        model.eq_solref[:] = [stretch * timestep, 1]
        settled.append(_settle(m, model, data, forces, speed, steps))
    return 2 * settled[0] - settled[1]


def _settle(m, model, data, forces, speed, steps):
    ids = {body: mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, body) for body in forces}
    for step in range(steps):
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        for body, force in forces.items():
            i = ids[body]
            lever = data.xpos[i] - data.xipos[i]  # MuJoCo applies forces at the centre of mass
            data.xfrc_applied[i] = [*force, *np.cross(lever, force)]
        mujoco.mj_step(model, data)
        if step > 100 and step % 50 == 0 and np.abs(data.qvel).max() < speed:
            mujoco.mj_kinematics(model, data)
            names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, i) for i in range(model.nbody)]
            where = np.array([names.index(name) for name in m.body_names])
            poses = np.tile(np.eye(4), (m.body_count, 1, 1))
            poses[:, :3, :3] = data.xmat[where].reshape(-1, 3, 3)
            poses[:, :3, 3] = data.xpos[where]
            return poses
    raise AssertionError(f"MuJoCo does not come to rest: joint velocity {np.abs(data.qvel).max():.2g}")
