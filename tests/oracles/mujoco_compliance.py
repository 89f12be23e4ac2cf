"""Compliance of bodies from MuJoCo's own data: its Jacobians, springs, servos and equality constraints.

Nothing of pliant is used. Joint springs are `jnt_stiffness`; tendons and position servos are rows of MuJoCo's tendon
Jacobian and actuator moments; loops and couplings are the rows of `efc_J`.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import mujoco
import numpy as np

_FREE = int(mujoco.mjtJoint.mjJNT_FREE)
_COUPLINGS = [int(mujoco.mjtEq.mjEQ_JOINT), int(mujoco.mjtEq.mjEQ_TENDON)]


def read(file: Path) -> mujoco.MjModel:
    """MuJoCo's own reading of a file.

    Of a URDF only links and joints are kept: MuJoCo knows no packages to look for meshes in, and many a file has
    inertias that it refuses, while compliance depends on neither.
    """
    if file.suffix != ".urdf":
        return mujoco.MjModel.from_xml_path(str(file))
    root = ET.fromstring(file.read_bytes())
    for old in [child for child in root if child.tag not in ("link", "joint")]:
        root.remove(old)
    for link in root.findall("link"):
        for part in list(link):
            link.remove(part)
        inertial = ET.SubElement(link, "inertial")
        ET.SubElement(inertial, "mass", value="1")
        ET.SubElement(inertial, "inertia", ixx="1", iyy="1", izz="1", ixy="0", ixz="0", iyz="0")
    extension = ET.SubElement(root, "mujoco")
    ET.SubElement(extension, "compiler", fusestatic="false")
    return mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))


def compliance(
    model: mujoco.MjModel, qpos: np.ndarray, bodies: Sequence[int], default_stiffness: float
) -> np.ndarray:
    """J N (Nᵀ K N)⁻¹ Nᵀ Jᵀ, N the motions that equality constraints allow; free joints are held.

    Args:
        model: the model; its contacts, limits and dry friction are switched off.
        qpos: where, with equality constraints met.
        bodies: MuJoCo's numbers of e bodies.
        default_stiffness: of every dof that is not held by springs, tendons, servos and couplings.

    Returns:
        (6e, 6e): twists per wrench, in body frames at body origins, linear first.
    """
    off = mujoco.mjtDisableBit
    for bit in (off.mjDSBL_CONTACT, off.mjDSBL_LIMIT, off.mjDSBL_FRICTIONLOSS):
        model.opt.disableflags |= int(bit)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    kept = np.array(model.jnt_type)[model.dof_jntid] != _FREE
    jacobian = np.concatenate([_body_jacobian(model, data, body) for body in bodies])[:, kept]
    motions = _null_space(_equality_rows(model, data)[:, kept])
    stiffness = _stiffness(model, data, default_stiffness)[np.ix_(kept, kept)]
    jacobian = jacobian @ motions
    return jacobian @ np.linalg.solve(motions.T @ stiffness @ motions, jacobian.T)


def _body_jacobian(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> np.ndarray:
    linear, angular = np.zeros((2, 3, model.nv))
    mujoco.mj_jacBody(model, data, linear, angular, body)
    to_body = data.xmat[body].reshape(3, 3).T
    return np.concatenate([to_body @ linear, to_body @ angular])


def _equality_rows(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    rows = data.efc_J.reshape(data.nefc, model.nv)
    return rows[data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)]


def _null_space(rows: np.ndarray) -> np.ndarray:
    if not len(rows):
        return np.eye(rows.shape[1])
    _, size, directions = np.linalg.svd(rows)
    return directions[int((size > 1e-9 * size.max(initial=0)).sum()) :].T


def _stiffness(model: mujoco.MjModel, data: mujoco.MjData, default: float) -> np.ndarray:
    """The joint-space stiffness of joints, tendons and servos whose control is held at zero."""
    own = np.array(model.jnt_stiffness)[model.dof_jntid]
    nv = model.nv
    tendons = _dense(
        data.ten_J, model.ten_J_rownnz, model.ten_J_rowadr, model.ten_J_colind, model.ntendon, nv
    )
    servos = _dense(
        data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind, model.nu, nv
    )
    # With no control an actuator pulls with its bias, b0 + b1 * length + b2 * velocity: a spring of stiffness -b1.
    affine = np.array(model.actuator_biastype) == int(mujoco.mjtBias.mjBIAS_AFFINE)
    rows = np.concatenate([tendons, servos])
    along = np.concatenate([model.tendon_stiffness, np.where(affine, -model.actuator_biasprm[:, 1], 0.0)])
    couplings = np.isin(np.array(model.eq_type)[data.efc_id[: data.ne]], _COUPLINGS)
    ties = np.concatenate([rows[along != 0], data.efc_J.reshape(data.nefc, nv)[: data.ne][couplings]])
    loose = own == 0
    loose[loose] = (np.abs(_null_space(ties[:, loose])) > 1e-9).any(axis=1)
    return np.diag(np.where(loose, default, own)) + rows.T @ (along[:, None] * rows)


def _dense(
    values: np.ndarray, count: np.ndarray, start: np.ndarray, column: np.ndarray, rows: int, columns: int
) -> np.ndarray:
    """A matrix from MuJoCo's compressed rows."""
    out = np.zeros((rows, columns))
    for r in range(rows):
        part = slice(start[r], start[r] + count[r])
        out[r, column[part]] = values[part]
    return out
