"""Every model of three wheels and ../shared/models loads and agrees with MuJoCo, or is refused for a known reason.

Every other one, many being variants of their neighbour, is saved in pliant's own file and loaded again.
"""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import mujoco
import numpy as np
import pytest

import pliant
from pliant.errors import PliantError, UnsupportedWarning
from pliant.formats import load, save
from pliant.mechanism.kinematics import link_poses

from . import corpus
from .identity import assert_identical

DRAWS = 10
# files saved and loaded, at least
TRIPS = {"dm_control": 15, "gymnasium_robotics": 12, "example-robot-data": 15, "shared": 0}


def mujoco_model(file: Path) -> mujoco.MjModel:
    """MuJoCo's own reading of a file, by another way than ours.

    MuJoCo knows no packages; for URDF, geometry in files is taken away, which leaves the masses as they are.
    """
    if file.suffix != ".urdf":
        return mujoco.MjModel.from_xml_path(str(file))
    root = ET.fromstring(file.read_bytes())
    for link in root.iter("link"):
        for part in [*link.findall("visual"), *link.findall("collision")]:
            if part.find(".//mesh") is not None:
                link.remove(part)
    for old in root.findall("mujoco"):
        root.remove(old)
    extension = ET.SubElement(root, "mujoco")
    ET.SubElement(extension, "compiler", fusestatic="false", discardvisual="false")
    return mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))


def silence(model: mujoco.MjModel) -> None:
    """Switch off what pliant leaves out, so that only springs, dampers and servos remain."""
    model.opt.gravity[:] = 0
    model.opt.density = model.opt.viscosity = 0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.body_gravcomp[:] = 0
    model.actuator_forcelimited[:] = 0
    model.jnt_actfrclimited[:] = 0
    for t in range(model.ntendon):
        part = slice(model.tendon_adr[t], model.tendon_adr[t] + model.tendon_num[t])
        band = model.tendon_lengthspring[t]
        if (model.wrap_type[part] != mujoco.mjtWrap.mjWRAP_JOINT).any() or band[0] != band[1]:
            model.tendon_stiffness[t] = model.tendon_damping[t] = 0


def random_q(model: mujoco.MjModel, rng: np.random.Generator) -> np.ndarray:
    q = np.array(model.qpos0)
    mujoco.mj_integratePos(model, q, rng.normal(size=model.nv), 0.7)
    return q


def spring_force(m: pliant.Mechanism, q: np.ndarray) -> np.ndarray:
    """Generalised force of all springs, written out dof by dof from the mechanism's definition."""
    force, x = np.zeros(m.nv), np.zeros(m.nv)
    for p in range(len(m.primitive_kind)):
        d, c = m.primitive_dof[p], m.primitive_coordinate[p]
        if m.primitive_kind[p] == 2:
            turn = np.zeros(3)
            mujoco.mju_subQuat(turn, q[c : c + 4], m.rest[c : c + 4])
            x[d : d + 3] = turn
            force[d : d + 3] = -m.stiffness[d : d + 3] * turn
        else:
            x[d] = q[c]
            force[d] = -m.stiffness[d] * (q[c] - m.rest[c])
    for r in range(len(m.tendons)):
        dofs, coefficients = m.tendons.row(r)
        force[dofs] -= coefficients * m.tendon_stiffness[r] * (coefficients @ x[dofs] - m.tendon_rest[r])
    return force


def check_agreement(m: pliant.Mechanism, model: mujoco.MjModel) -> None:
    """Mass, pose, kinematics, stiffness and damping against MuJoCo."""
    data = mujoco.MjData(model)
    assert m.body_count == model.nbody - 1
    np.testing.assert_allclose(m.mass, model.body_mass[1:], rtol=1e-12, atol=0)
    assert m.total_mass == pytest.approx(model.body_mass[1:].sum(), rel=1e-12)
    for i in range(m.body_count):
        name = model.body(i + 1).name
        assert m.body_names[i] == name or (not name and m.body_names[i])
        axes = np.zeros(9)
        mujoco.mju_quat2Mat(axes, model.body_iquat[i + 1])
        axes = axes.reshape(3, 3)
        inertia = axes @ np.diag(model.body_inertia[i + 1]) @ axes.T
        np.testing.assert_allclose(
            m.inertia[i], inertia, rtol=0, atol=1e-12 * max(np.abs(inertia).max(), 1e-300)
        )
    np.testing.assert_allclose(m.com, model.body_ipos[1:], rtol=0, atol=1e-12)
    nq, nv = model.nq, model.nv
    if not m.topology.loops and not len(m.couplings):
        np.testing.assert_array_equal(m.reference[:nq], model.qpos0)
    check_poses(m, model, data, m.reference[:nq], m.reference_poses)

    rng = np.random.default_rng(0)
    silence(model)
    tail = m.reference[nq:]
    size = max(1.0, m.radius)
    for _ in range(DRAWS):
        q = random_q(model, rng)
        ours = link_poses(m, np.concatenate([q, tail]))[m.links.body_link]
        check_poses(m, model, data, q, ours, size)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, 0, 0
        mujoco.mj_forward(model, data)
        theirs = data.qfrc_passive + data.qfrc_actuator
        mine = spring_force(m, np.concatenate([q, tail]))[:nv]
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-10 * max(1.0, np.abs(theirs).max(initial=0)))
        velocity = rng.normal(size=nv)
        data.qvel[:] = velocity
        mujoco.mj_forward(model, data)
        drag = data.qfrc_passive + data.qfrc_actuator - theirs
        np.testing.assert_allclose(
            -m.damping_matrix[:nv, :nv] @ velocity,
            drag,
            rtol=0,
            atol=1e-10 * max(1.0, np.abs(drag).max(initial=0)),
        )
    limited = np.repeat(model.jnt_limited, [{0: 6, 1: 3}.get(int(t), 1) for t in model.jnt_type]).astype(bool)
    assert (np.isfinite(m.upper[:nv]) == limited).all()


def check_poses(m, model, data, q, ours, size=1.0) -> None:
    data.qpos[:] = q
    mujoco.mj_kinematics(model, data)
    np.testing.assert_allclose(ours[:, :3, 3], data.xpos[1:], rtol=0, atol=1e-10 * size)
    np.testing.assert_allclose(ours[:, :3, :3].reshape(-1, 9), data.xmat[1:], rtol=0, atol=1e-10)


def vertex_count(m: pliant.Mechanism) -> int:
    return sum(len(mesh.vertices) for mesh in m.shape_table.meshes)


@pytest.mark.parametrize("wheel", ["dm_control", "gymnasium_robotics", "example-robot-data", "shared"])
def test_models_of(wheel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo, used here directly, writes its log into the working directory
    root = corpus.folder(wheel)
    if wheel == "shared" and not root.is_dir():
        pytest.skip(f"{root} is not there: the models of ../shared are not part of the project")
    expected_count, expected_refusals = corpus.EXPECTED[wheel]
    loaded, refused, wrong, trips = [], {}, [], 0
    for file in corpus.files(wheel):
        name = file.relative_to(root).as_posix()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                m = load(file, allow=[root])
            except PliantError as error:
                refused[name] = str(error)
                continue
        assert all(issubclass(w.category, UnsupportedWarning) for w in caught), [
            str(w.message) for w in caught
        ]
        assert len(caught) <= 1
        loaded.append(name)
        try:
            check_agreement(m, mujoco_model(file))
            if len(loaded) % 2 and vertex_count(m) < 30_000:
                save(m, tmp_path / "m.json")
                assert_identical(m, load(tmp_path / "m.json"))
                trips += 1
        except Exception as error:  # gather all before failing
            wrong.append(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    print(
        f"\n{wheel}: {len(loaded)} of {len(loaded) + len(refused)} files load and agree with MuJoCo; refused:"
    )
    for name, reason in refused.items():
        print(f"  {name}: {re.sub(re.escape(str(root)) + '/?', '', reason)[:160]}")
    assert not wrong, "\n".join(wrong)
    assert trips >= TRIPS[wheel]
    assert len(loaded) + len(refused) == expected_count
    assert refused.keys() == expected_refusals.keys()
    for name, part in expected_refusals.items():
        assert part in refused[name], name
        if part not in corpus.OURS_ALONE:
            with pytest.raises(ValueError, match=r"\S"):
                mujoco_model(root / name)
