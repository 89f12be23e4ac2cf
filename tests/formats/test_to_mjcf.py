"""`to_mjcf`: MuJoCo loads it, and it moves, weighs and springs the same."""

from __future__ import annotations

import warnings

import mujoco
import numpy as np
import pytest

import pliant
from oracles.random_mechanisms import KINDS, random_mechanism, random_q
from pliant.errors import FormatError, InputError
from pliant.formats import load, to_mjcf
from pliant.mechanism import kinematics

from . import corpus

BALL = 2


def compiled(m: pliant.Mechanism) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(to_mjcf(m))
    return model, mujoco.MjData(model)


def mapping(m: pliant.Mechanism, model: mujoco.MjModel) -> list[tuple[int, int, int, int, np.ndarray | None]]:
    """For every primitive of the tree: our coordinate and dof, MuJoCo's, and for a ball its axes in the child."""
    out = []
    for j in m.topology.tree.tolist():
        part = m.joint_primitives(j)
        count = part.stop - part.start
        if (
            count
            and model.joint(
                m.joint_names[j]
                if _has(model, m.joint_names[j])
                else m.dof_names[m.primitive_dof[part.start]]
            ).type
            == 0
        ):
            joint = model.joint(m.joint_names[j])
            for i, p in enumerate(range(part.start, part.stop)):
                out.append(
                    (
                        int(m.primitive_coordinate[p]),
                        int(m.primitive_dof[p]),
                        joint.qposadr[0] + i,
                        joint.dofadr[0] + i,
                        np.eye(3) if i == 3 else None,
                    )
                )
            continue
        for p in range(part.start, part.stop):
            ball = m.primitive_kind[p] == BALL
            if count == 1:
                name = m.joint_names[j]
            else:
                name = f"{m.joint_names[j]}.ball" if ball else m.dof_names[m.primitive_dof[p]]
            joint = model.joint(name)
            out.append(
                (
                    int(m.primitive_coordinate[p]),
                    int(m.primitive_dof[p]),
                    joint.qposadr[0],
                    joint.dofadr[0],
                    m.child_frames[j, :3, :3] if ball else None,
                )
            )
    return out


def _has(model, name):
    return mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) >= 0


def to_mujoco(m, model, q) -> np.ndarray:
    out = np.array(model.qpos0)
    for c, _, qpos, _, turn in mapping(m, model):
        if turn is None:
            out[qpos] = q[c]
        else:
            out[qpos], out[qpos + 1 : qpos + 4] = q[c], turn @ q[c + 1 : c + 4]
    return out


def velocity_map(m, model) -> np.ndarray:
    """qvel = map @ v, for the tree's dofs."""
    out = np.zeros((model.nv, m.nv))
    for _, d, _, dof, turn in mapping(m, model):
        if turn is None:
            out[dof, d] = 1
        else:
            out[dof : dof + 3, d : d + 3] = turn
    return out


def mass_matrix(m: pliant.Mechanism, q) -> np.ndarray:
    """Sum over bodies of J^T M J, from the Jacobians alone."""
    poses = kinematics.link_poses(m, q)
    out = np.diag(m.armature)
    for b in range(m.body_count):
        J = kinematics.link_jacobian(m, poses, m.links.body_link[b])
        R = poses[m.links.body_link[b], :3, :3]
        arm = R @ m.com[b]
        linear = J[:3] - np.cross(arm[:, None], J[3:], axis=0)
        out += m.mass[b] * linear.T @ linear + J[3:].T @ R @ m.inertia[b] @ R.T @ J[3:]
    return out


def spring_force(m: pliant.Mechanism, q) -> np.ndarray:
    force = np.zeros(m.nv)
    for p in range(len(m.primitive_kind)):
        d, c = m.primitive_dof[p], m.primitive_coordinate[p]
        if m.primitive_kind[p] == BALL:
            turn = np.zeros(3)
            mujoco.mju_subQuat(turn, q[c : c + 4], m.rest[c : c + 4])
            force[d : d + 3] = -m.stiffness[d : d + 3] * turn
        else:
            force[d] = -m.stiffness[d] * (q[c] - m.rest[c])
    return force


def check_tree(m: pliant.Mechanism, draws: int = 3) -> None:
    """Kinematics, mass matrix and springs at random coordinates; pose at the reference."""
    model, data = compiled(m)
    ids = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name) for name in m.body_names]
    scale = max(1.0, m.radius)
    to_velocity = velocity_map(m, model)
    for seed in range(-1, draws):
        q = m.reference if seed < 0 else random_q(m, seed)
        data.qpos[:], data.qvel[:] = to_mujoco(m, model, q), 0
        mujoco.mj_forward(model, data)
        poses = kinematics.link_poses(m, q)[m.links.body_link]
        np.testing.assert_allclose(data.xpos[ids], poses[:, :3, 3], atol=1e-10 * scale)
        np.testing.assert_allclose(data.xmat[ids].reshape(-1, 3, 3), poses[:, :3, :3], atol=1e-10)
        full = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, full)
        ours = mass_matrix(m, q)
        np.testing.assert_allclose(
            to_velocity.T @ full @ to_velocity, ours, atol=1e-10 * np.abs(ours).max(initial=1.0)
        )
        if not len(m.tendons):
            force = to_velocity.T @ data.qfrc_spring
            np.testing.assert_allclose(force, spring_force(m, q), atol=1e-10 * np.abs(force).max(initial=1.0))
        speed = np.random.default_rng(5).normal(size=m.nv)
        data.qvel[:] = to_velocity @ speed
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(to_velocity.T @ data.qfrc_damper, -m.damping_matrix @ speed, atol=1e-9)
    if m.nv:
        mujoco.mj_resetDataKeyframe(model, data, 0)
        np.testing.assert_allclose(data.qpos, to_mujoco(m, model, m.reference), atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_each_joint_type(kind):
    check_tree(random_mechanism(3, bodies=4, kinds=(kind,), isotropic=True))


@pytest.mark.parametrize("seed", range(12))
def test_random_trees(seed):
    check_tree(random_mechanism(seed, bodies=9, isotropic=True))


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_with_coordinates_at_the_reference(seed):
    kinds = ("hinge", "slide", "universal", "cylindrical", "planar", "stack", "fixed")
    check_tree(random_mechanism(seed, bodies=8, kinds=kinds, reference=True))
    # Balls too, without springs: MuJoCo's are slack at the identity only.
    check_tree(random_mechanism(seed, bodies=8, stiffness=0.0, reference=True, isotropic=True))


def read_back(m, tmp_path):
    (tmp_path / "m.xml").write_text(to_mjcf(m))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return load(tmp_path / "m.xml")


@pytest.mark.parametrize("seed", range(6))
def test_round_trip(seed, tmp_path):
    kinds = ("hinge", "slide", "universal", "cylindrical", "planar", "stack", "fixed", "bushing")
    m = random_mechanism(seed, bodies=7, kinds=kinds, isotropic=True)
    n = read_back(m, tmp_path)
    where = [n.body_index(name) for name in m.body_names]
    assert n.body_count == m.body_count
    np.testing.assert_allclose(n.mass[where], m.mass, rtol=1e-15)
    np.testing.assert_allclose(n.com[where], m.com, rtol=1e-15)
    np.testing.assert_allclose(n.inertia[where], m.inertia, rtol=0, atol=1e-12 * m.inertia.max())
    np.testing.assert_allclose(n.reference_poses[where], m.reference_poses, atol=1e-12)
    for d, name in enumerate(m.dof_names):
        if m.dof_kind[d] != BALL:
            e = n.dof_index(name)
            for label in ("stiffness", "damping", "armature", "lower", "upper"):
                assert getattr(n, label)[e] == getattr(m, label)[d], (label, name)
            assert n.rest[n.dof_coordinate[e]] == m.rest[m.dof_coordinate[d]]
            assert n.reference[n.dof_coordinate[e]] == m.reference[m.dof_coordinate[d]]


def test_real_models_come_back_the_same(tmp_path):
    """Loaded, written, loaded: nothing changes. MuJoCo orders by depth first, as these files do."""
    count = 0
    for wheel in ("dm_control", "gymnasium_robotics", "shared"):
        if wheel == "shared" and not corpus.folder(wheel).is_dir():
            continue
        root = corpus.folder(wheel)
        for file in corpus.files(wheel)[::3]:
            if file.relative_to(root).as_posix() in corpus.EXPECTED[wheel][1]:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                m = load(file, allow=[root])
            if sum(len(mesh.vertices) for mesh in m.shape_table.meshes) > 20_000:
                continue
            n = read_back(m, tmp_path)
            assert n.body_names == m.body_names
            assert n.dof_names == m.dof_names
            for label in (
                "mass",
                "reference_poses",
                "stiffness",
                "damping",
                "armature",
                "rest",
                "reference",
                "lower",
                "upper",
            ):
                np.testing.assert_allclose(
                    getattr(n, label),
                    getattr(m, label),
                    rtol=1e-12,
                    atol=1e-12,
                    err_msg=f"{file.name} {label}",
                )
            np.testing.assert_allclose(n.inertia, m.inertia, rtol=0, atol=1e-12 * m.inertia.max())
            np.testing.assert_allclose(n.stiffness_matrix, m.stiffness_matrix, rtol=1e-12)
            np.testing.assert_allclose(n.couplings.dense(n.nv), m.couplings.dense(m.nv), rtol=1e-12)
            np.testing.assert_allclose(n.coupling_offset, m.coupling_offset, rtol=1e-12, atol=1e-12)
            assert n.topology.loops == m.topology.loops
            np.testing.assert_array_equal(n.shape_table.kind, m.shape_table.kind)
            count += 1
    assert count >= 15


def test_a_free_base_is_a_free_joint():
    b = pliant.Builder("drone")
    b.body("hull", mass=1.0, inertia=(1, 1, 1), position=(1, 2, 3), orientation=(0.6, 0.8, 0, 0))
    b.joint(
        "float",
        "free",
        "world",
        "hull",
        [
            ("slide", (1, 0, 0), (0, 0, 0)),
            ("slide", (0, 1, 0), (0, 0, 0)),
            ("slide", (0, 0, 1), (0, 0, 0)),
            ("ball", (0, 0, 1), (0, 0, 0)),
        ],
        parent_frame=np.eye(4),
        child_frame=np.eye(4),
        reference=(1, 2, 3, 0.6, 0.8, 0, 0),
        damping=0.3,
    )
    m = b.build()
    model, _ = compiled(m)
    assert model.jnt_type.tolist() == [int(mujoco.mjtJoint.mjJNT_FREE)]
    np.testing.assert_allclose(model.qpos0, [1, 2, 3, 0.6, 0.8, 0, 0])
    np.testing.assert_array_equal(model.dof_damping, [0.3] * 6)
    check_tree(m)


# --- loops --------------------------------------------------------------------------------------------------


def two_bars(closing, **spring) -> pliant.Mechanism:
    b = pliant.Builder("loop")
    b.body(
        "left",
        mass=1.0,
        inertia=(0.1, 0.2, 0.25),
        com=(0.1, 0, 0),
        position=(0, 0, 1),
        orientation=(0.8, 0, 0.6, 0),
    )
    b.body("right", mass=2.0, inertia=(0.3, 0.2, 0.25), position=(1, 0, 1))
    b.hinge("a", "world", "left", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=3.0)
    b.hinge("b", "world", "right", anchor=(1, 0, 0), axis=(0, 1, 0), reference=0.3)
    closing(b, **spring)
    return b.build()


@pytest.mark.parametrize(
    ("closing", "equality", "bodies"),
    [
        (lambda b: b.ball("c", "left", "right", anchor=(0.5, 0, 1)), "connect", 2),
        (lambda b: b.fixed("c", "left", "right"), "weld", 2),
        (lambda b: b.hinge("c", "left", "right", anchor=(0.5, 0, 1), axis=(0, 1, 0)), "weld", 3),
        (lambda b: b.ball("c", "left", "right", anchor=(0.5, 0, 1), stiffness=2.0), "weld", 3),
        (
            lambda b: b.hinge(
                "c", "left", "right", anchor=(0.5, 0, 1), axis=(0, 1, 0), stiffness=5.0, rest=0.2
            ),
            "weld",
            3,
        ),
        (lambda b: b.bushing("c", "left", "right", anchor=(0.5, 0, 1), stiffness=5.0), "weld", 3),
        (lambda b: b.hinge("c", "world", "right", anchor=(0.5, 0, 1), axis=(0, 1, 0)), "weld", 3),
        (lambda b: b.ball("c", "world", "right", anchor=(0.5, 0, 1)), "connect", 2),
    ],
)
def test_loops_close_at_the_reference(closing, equality, bodies):
    m = two_bars(closing)
    model, data = compiled(m)
    assert model.nbody - 1 == bodies
    assert model.body_mass.sum() == pytest.approx(m.total_mass, rel=1e-14)
    assert model.neq == 1
    assert (
        model.eq_type[0] == {"connect": mujoco.mjtEq.mjEQ_CONNECT, "weld": mujoco.mjtEq.mjEQ_WELD}[equality]
    )
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    assert data.ne == {"connect": 3, "weld": 6}[equality]
    assert np.abs(data.efc_pos[: data.ne]).max() < 1e-12
    for i, name in enumerate(m.body_names):
        np.testing.assert_allclose(data.body(name).xpos, m.reference_poses[i, :3, 3], atol=1e-12)
    if bodies == 3:
        copy = data.body("right.c")
        np.testing.assert_allclose(copy.xpos, data.body("right").xpos, atol=1e-12)
        np.testing.assert_allclose(copy.xmat, data.body("right").xmat, atol=1e-12)
        assert model.body("right.c").mass[0] == pytest.approx(1.0)


def test_a_sprung_loop_settles_where_statics_says():
    """A four-bar of sprung hinges, pulled sideways: MuJoCo comes to rest near our static solution."""
    b = pliant.Builder("four-bar")
    for name, x, z in (("left", 0, 1), ("top", 1, 2), ("right", 2, 1)):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), position=(x, 0, z))
    for name, parent, child, x, z in (
        ("a", "world", "left", 0, 0),
        ("b", "left", "top", 0, 2),
        ("c", "world", "right", 2, 0),
        ("d", "top", "right", 2, 2),
    ):
        b.hinge(name, parent, child, anchor=(x, 0, z), axis=(0, 1, 0), stiffness=50.0, damping=20.0)
    m = b.build()
    assert m.topology.loops == 1
    model, data = compiled(m)
    assert model.nbody == 5  # with half of one of the bars
    model.opt.gravity[:] = 0
    body = model.body("top").id
    for _ in range(20_000):
        data.xfrc_applied[body, :3] = [20.0, 0, 0]
        mujoco.mj_step(model, data)
    assert np.abs(data.qvel).max() < 1e-6
    loaded = pliant.equilibrium(m, {"top": (20.0, 0, 0)})
    ours = np.asarray(loaded.poses)[:, :3, 3]
    assert np.abs(ours - m.reference_poses[:, :3, 3]).max() > 0.1
    theirs = np.array([data.body(name).xpos for name in m.body_names])
    np.testing.assert_allclose(theirs, ours, atol=1e-4)  # MuJoCo's weld is soft


def test_three_loops_at_one_body_share_its_mass():
    b = pliant.Builder("plate")
    b.body("plate", mass=4.0, inertia=(1, 1, 1))
    for i in range(4):
        b.bushing(f"leg{i}", "world", "plate", anchor=(i, 0, 0), stiffness=10.0)
    model, _ = compiled(b.build())
    np.testing.assert_allclose(sorted(model.body_mass[1:]), [1, 1, 1, 1])


# --- couplings, tendons, limits, shapes ---------------------------------------------------------------------


def chain(n=4, **spring) -> pliant.Builder:
    b = pliant.Builder("chain")
    for i in range(n):
        b.body(f"b{i}", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(i, 0, 0))
        b.hinge(
            f"j{i}",
            f"b{i - 1}" if i else "world",
            f"b{i}",
            anchor=(i, 0, 0),
            axis=(0, 0, 1),
            reference=0.1 * i,
            **spring,
        )
    return b


def test_couplings(tmp_path):
    b = chain()
    b.couple({"j0": 2.0, "j1": -3.0}, name="two")
    b.couple({"j1": 1.0, "j2": -3.0, "j3": 0.5}, name="three")
    b.couple({"j3": 2.0}, name="lock")
    m = b.build()
    model, data = compiled(m)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    assert data.ne == 3
    np.testing.assert_allclose(data.efc_pos[:3], 0, atol=1e-14)
    jacobian = data.efc_J.reshape(-1, model.nv)[:3]
    rows = m.couplings.dense(m.nv)
    for row in rows:  # the same constraint up to a factor
        assert any(np.linalg.matrix_rank(np.array([row, other]), tol=1e-9) == 1 for other in jacobian)
    n = read_back(m, tmp_path)
    assert len(n.couplings) == 3
    np.testing.assert_allclose(
        np.abs(np.linalg.svd(n.couplings.dense(n.nv))[2][:3] @ np.linalg.svd(rows)[2][3]), 0, atol=1e-12
    )


def test_tendons(tmp_path):
    b = chain()
    b.tendon("servo", {"j0": 1.0, "j2": -2.0}, stiffness=7.0, damping=0.3, rest=0.4)
    b.tendon("minus one", {"j0": 1.0, "j3": 1.0}, stiffness=2.0, rest=-1.0)
    m = b.build()
    check_tree(m)
    n = read_back(m, tmp_path)
    assert n.tendon_names == ("servo", "minus one")
    np.testing.assert_allclose(n.stiffness_matrix, m.stiffness_matrix, rtol=1e-14)
    np.testing.assert_allclose(n.damping_matrix, m.damping_matrix, rtol=1e-14)
    np.testing.assert_allclose(n.tendon_rest, m.tendon_rest, rtol=1e-14)


def test_limits():
    b = chain(3)
    m = b.build().replace(lower=np.array([-1.0, -np.inf, -np.inf]), upper=np.array([2.0, 0.5, np.inf]))
    model, _ = compiled(m)
    assert model.jnt_limited.tolist() == [1, 1, 0]
    np.testing.assert_array_equal(model.jnt_range[0], [-1, 2])
    assert model.jnt_range[1, 1] == 0.5
    assert model.jnt_range[1, 0] < -1e6


def test_shapes_are_for_the_eye_only(tmp_path):
    b = pliant.Builder("shapes")
    vertices, faces = (
        [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)],
        [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)],
    )
    shapes = [
        pliant.shapes.sphere(0.1),
        pliant.shapes.box((0.1, 0.2, 0.3), position=(1, 0, 0), rgba=(1, 0, 0, 0.5)),
        pliant.shapes.capsule(0.1, 0.2),
        pliant.shapes.cylinder(0.1, 0.2),
        pliant.shapes.ellipsoid((0.1, 0.2, 0.3)),
        pliant.shapes.mesh(vertices, faces, position=(0, 0, 1)),
        pliant.shapes.mesh(vertices[:3], [(0, 1, 2)]),
    ]
    b.body("a", mass=1.5, inertia=(1, 1, 1), shapes=shapes)
    b.hinge("j", "world", "a", anchor=(0, 0, 0), axis=(0, 0, 1))
    b.world_shape(pliant.shapes.plane(2, 0))
    m = b.build()
    model, _ = compiled(m)
    assert not model.geom_contype.any()
    assert not model.geom_conaffinity.any()
    assert model.body_mass.tolist() == [0, 1.5]
    n = read_back(m, tmp_path)
    assert [s.kind for s in n.shapes("a")] == ["sphere", "box", "capsule", "cylinder", "ellipsoid", "mesh"]
    assert n.shapes("a")[1].rgba == (1, 0, 0, 0.5)
    assert n.shapes("world")[0].size == (2, 0, 0)


def test_names_are_escaped(tmp_path):
    b = pliant.Builder('a & "b" <c>')
    b.body("x<y>&\"'", mass=1.0, inertia=(1, 1, 1))
    b.hinge("j & k", "world", "x<y>&\"'", anchor=(0, 0, 0), axis=(0, 0, 1))
    n = read_back(b.build(), tmp_path)
    assert (n.name, n.body_names, n.joint_names) == ('a & "b" <c>', ("x<y>&\"'",), ("j & k",))


def test_massless_frames(tmp_path):
    b = chain(2)
    b.body("tool", mass=0.0, inertia=(0, 0, 0), position=(2, 0, 0), shapes=[pliant.shapes.sphere(0.1)])
    b.fixed("mount", "b1", "tool")
    n = read_back(b.build(), tmp_path)
    assert n.mass.tolist() == [1, 1, 0]


# --- what MuJoCo cannot do ----------------------------------------------------------------------------------


def ball(**spring) -> pliant.Mechanism:
    b = pliant.Builder("ball")
    b.body("a", mass=1.0, inertia=(1, 1, 1))
    b.ball("socket", "world", "a", anchor=(0, 0, 0), **spring)
    return b.build()


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (lambda: ball(stiffness=(1, 2, 3)), "'socket'.*one stiffness for all its axes"),
        (lambda: ball(damping=(1, 2, 3)), "'socket'.*one damping"),
        (lambda: ball(armature=(1, 2, 3)), "'socket'.*one armature"),
        (lambda: ball(limits=[(-1, 1), (-1, 1), (-1, 2)]), "'socket'.*one limit"),
        (lambda: ball(stiffness=1.0, rest=(0.6, 0.8, 0, 0)), "'socket'.*slack at the identity only"),
        (lambda: ball(stiffness=np.diag([1.0, 2.0, 3.0])), "tendon 'socket/stiffness.'.*of a ball"),
        (lambda: chain(2).build().replace(lower=np.zeros(2), upper=np.zeros(2)), "'j0'.*lower limit below"),
    ],
)
def test_what_mujoco_cannot_express_is_named(mechanism, message):
    with pytest.raises(FormatError, match=message):
        to_mjcf(mechanism())


def test_further_refusals():
    b = pliant.Builder("mixed")
    b.body("a", mass=1.0, inertia=(1, 1, 1))
    b.stack("odd", "world", "a", [("hinge", (1, 0, 0), (0, 0, 0)), ("ball", (0, 0, 1), (0, 0, 0))])
    with pytest.raises(FormatError, match=r"'odd'.*no other rotation beside a ball"):
        to_mjcf(b.build())
    deep = chain(600).build()
    with pytest.raises(FormatError, match="600 bodies deep"):
        to_mjcf(deep)
    assert compiled(chain(480).build())[0].nbody == 481
    with pytest.raises(InputError):
        to_mjcf("chain")  # type: ignore[arg-type]
