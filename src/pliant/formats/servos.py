"""Springs and dampers of a compiled model: joints, fixed tendons, and servos around their set point.

With its control u held, an actuator of affine gain and bias pulls with

    force = (g0 + g1 l + g2 v) u + b0 + b1 l + b2 v  =  c - k l - d v,

l and v being the length and velocity of its transmission: a spring of stiffness k, slack at l = c / k, and a damper.
On a joint of gear g (l = g q) that is a joint spring of stiffness g² k; on a fixed tendon it is a tendon spring.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pliant.formats.compiler import CompiledModel
from pliant.formats.left_out import LeftOut

__all__ = ["Springs", "TendonSpring", "fixed_tendon", "springs"]

# MuJoCo's enumerations, as in its mjtype.h.
FREE, BALL, SLIDE, HINGE = 0, 1, 2, 3
_TRN_JOINT, _TRN_JOINT_IN_PARENT, _TRN_TENDON = 0, 1, 3
_GAIN_FIXED, _GAIN_AFFINE, _GAIN_MUSCLE, _GAIN_MOTOR, _GAIN_SO3, _GAIN_PID, _GAIN_USER = range(7)
_BIAS_NONE, _BIAS_AFFINE, _BIAS_MUSCLE, _BIAS_MOTOR, _BIAS_SO3, _BIAS_USER = range(6)
_DYN_NONE, _DYN_INTEGRATOR, _DYN_FILTER, _DYN_FILTER_EXACT, _DYN_MUSCLE, _DYN_MOTOR, _DYN_PID, _DYN_USER = (
    range(8)
)
_WRAP_JOINT = 1
_PID_POSITION, _PID_VELOCITY, _PID_FORCE = 1, 2, 4  # bits of the input signature, packed in this order
NO_SPRING, NO_DAMPER, NO_CONTROL_CLAMP, NO_ACTUATION = 1 << 5, 1 << 6, 1 << 8, 1 << 11
JOINT_DOFS = np.array([6, 3, 1, 1])


@dataclass
class TendonSpring:
    """A spring on a sum of coordinates."""

    name: str
    terms: dict[int, float]
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0

    def add(self, stiffness: float, rest: float, damping: float) -> None:
        self.rest = _shared_rest(self.stiffness, self.rest, stiffness, rest)
        self.stiffness += stiffness
        self.damping += damping


def _shared_rest(k1: float, rest1: float, k2: float, rest2: float) -> float:
    """Rest of two springs in parallel; exact if one has no stiffness."""
    if not k1 or not k2:
        return rest2 if k2 else rest1
    return rest1 + k2 / (k1 + k2) * (rest2 - rest1)


@dataclass
class Springs:
    """Per degree of freedom: stiffness, rest (of hinges and slides), damping, armature; and tendon springs."""

    stiffness: NDArray[np.float64]
    rest: NDArray[np.float64]
    damping: NDArray[np.float64]
    armature: NDArray[np.float64]
    tendons: list[TendonSpring] = field(default_factory=list)
    slack_balls: set[int] = field(default_factory=set)  # balls whose tendon springs measure from the identity


def fixed_tendon(model: CompiledModel, tendon: int) -> dict[int, float] | None:
    """The coefficients of a fixed tendon by degree of freedom; None for a spatial one."""
    start, count = int(model["tendon_adr"][tendon]), int(model["tendon_num"][tendon])
    part = slice(start, start + count)
    if (model["wrap_type"][part] != _WRAP_JOINT).any():
        return None
    terms: dict[int, float] = {}
    for joint, coefficient in zip(
        model["wrap_objid"][part].tolist(), model["wrap_prm"][part].tolist(), strict=True
    ):
        dof = int(model["jnt_dofadr"][joint])
        terms[dof] = terms.get(dof, 0.0) + coefficient
    return {dof: c for dof, c in terms.items() if c != 0}


def springs(
    model: CompiledModel, key: int | None, joints: list[str], tendon_names: list[str], report: LeftOut
) -> Springs:
    """Springs and dampers of joints, tendons and servos of a model.

    Args:
        model: the compiled model.
        key: keyframe with the controls of the servos; None for zero.
        joints, tendon_names: unique names of its joints and tendons.
        report: what cannot be represented; added to.
    """
    nv = len(model["dof_damping"])
    count = JOINT_DOFS[model["jnt_type"]] if len(model["jnt_type"]) else np.zeros(0, int)
    stiffness = np.repeat(model["jnt_stiffness"], count)
    damping, armature = np.array(model["dof_damping"]), np.array(model["dof_armature"])
    rest = np.zeros(nv)
    scalar = np.isin(model["jnt_type"], (HINGE, SLIDE))
    dof = model["jnt_dofadr"][scalar]
    rest[dof] = model["qpos_spring"][model["jnt_qposadr"][scalar]]
    if model.disableflags & NO_SPRING:
        stiffness = np.zeros(nv)
    if model.disableflags & NO_DAMPER:
        damping = np.zeros(nv)
    out = Springs(stiffness, rest, damping, armature)
    owner = np.repeat(np.arange(len(joints)), count)  # joint of every degree of freedom
    for kind, found in (
        ("nonlinear spring", np.flatnonzero(model["jnt_stiffnesspoly"].any(axis=1))),
        ("nonlinear damper", owner[model["dof_dampingpoly"].any(axis=1)]),
        ("spring that yields", np.flatnonzero(model["jnt_springyield"] > 0)),
    ):
        report.name(kind, [joints[j] for j in found.tolist()])
    for d in np.flatnonzero(model["dof_frictionloss"] > 0).tolist():
        kind, size = int(model["jnt_type"][owner[d]]), float(model["dof_frictionloss"][d])
        report.name(
            "joint with dry friction", [f"{joints[owner[d]]} {size:.3g} {'N' if kind == SLIDE else 'N m'}"]
        )
    tendons = _tendons(model, tendon_names, report)
    if not model.disableflags & NO_ACTUATION:
        for actuator in range(len(model["actuator_trntype"])):
            group = int(model["actuator_group"][actuator])
            if not (0 <= group < 31 and model.disableactuator >> group & 1):
                _servo(model, actuator, key, out, tendons, report)
    out.tendons.extend(t for t in tendons.values() if t.stiffness != 0 or t.damping != 0)
    return out


def _tendons(model: CompiledModel, names: list[str], report: LeftOut) -> dict[int, TendonSpring]:
    """The fixed tendons with their own springs."""
    found = {}
    for t in range(len(model["tendon_adr"])):
        terms = fixed_tendon(model, t)
        if terms is None:
            acting = ("stiffness", "damping", "limited", "frictionloss", "armature")
            report.name(
                "spatial tendon", [names[t]] if any(model[f"tendon_{word}"][t] for word in acting) else []
            )
            continue
        for kind, given in (
            ("tendon with a length limit", model["tendon_limited"][t]),
            ("tendon with dry friction", model["tendon_frictionloss"][t] > 0),
            ("tendon with armature", model["tendon_armature"][t] > 0),
            ("nonlinear spring", model["tendon_stiffnesspoly"][t].any()),
            ("nonlinear damper", model["tendon_dampingpoly"][t].any()),
            ("spring that yields", model["tendon_springyield"][t] > 0),
        ):
            report.name(kind, [names[t]] if given else [])
        if not terms:
            continue
        found[t] = spring = TendonSpring(names[t], terms)
        stiffness, (low, high) = float(model["tendon_stiffness"][t]), model["tendon_lengthspring"][t].tolist()
        if stiffness != 0 and not model.disableflags & NO_SPRING:
            if low == high:
                spring.add(stiffness, low, 0.0)
            else:
                report.name("tendon spring with a dead band", [names[t]])
        if not model.disableflags & NO_DAMPER:
            spring.add(0.0, 0.0, float(model["tendon_damping"][t]))
    return found


def _servo(
    model: CompiledModel,
    a: int,
    key: int | None,
    out: Springs,
    tendons: dict[int, TendonSpring],
    report: LeftOut,
) -> None:
    """Add one actuator's spring and damper to its joint or tendon."""
    affine = _affine(model, a, key, report)
    if affine is None:
        return
    force, stiffness, damping = affine
    transmission, target = int(model["actuator_trntype"][a]), int(model["actuator_trnid"][a, 0])
    gear = model["actuator_gear"][a]
    own, armature = float(model["actuator_damping"][a]), float(model["actuator_armature"][a])
    name = model.names["actuator"][a] or f"actuator {a}"
    if model["actuator_dampingpoly"][a].any():
        report.name("nonlinear damper", [name])
    if model.disableflags & NO_DAMPER:
        own = 0.0
    if stiffness < 0 or damping + own < 0:
        report.name("actuator with negative stiffness or damping", [name])
        return
    if transmission in (_TRN_JOINT, _TRN_JOINT_IN_PARENT):
        kind, dof = int(model["jnt_type"][target]), int(model["jnt_dofadr"][target])
        if kind in (HINGE, SLIDE):
            ratio = float(gear[0])
            if stiffness and ratio:
                own_stiffness, slack = stiffness * ratio * ratio, force / stiffness / ratio
                out.rest[dof] = _shared_rest(
                    float(out.stiffness[dof]), float(out.rest[dof]), own_stiffness, slack
                )
                out.stiffness[dof] += own_stiffness
            out.damping[dof] += (damping + own) * ratio * ratio
            out.armature[dof] += armature * ratio * ratio
            return
        if kind == BALL and transmission == _TRN_JOINT:
            terms = {dof + i: c for i, c in enumerate(gear[:3].tolist()) if c != 0}
            if terms and (stiffness or damping or own):
                spring = TendonSpring(model.names["actuator"][a] or f"servo{a}", terms)
                spring.add(stiffness, force / stiffness if stiffness else 0.0, damping + own)
                out.tendons.append(spring)
                out.slack_balls.add(target)
            return
    elif transmission == _TRN_TENDON and target in tendons:
        ratio = float(gear[0])
        if ratio:
            rest = force / stiffness / ratio if stiffness else 0.0
            tendons[target].add(stiffness * ratio * ratio, rest, (damping + own) * ratio * ratio)
        if armature > 0 and ratio != 0:
            report.name("tendon with armature", [name])
        return
    if stiffness or damping or own or armature:
        report.name("servo that acts through a site, slider-crank, spatial tendon or free joint", [name])


def _affine(
    model: CompiledModel, a: int, key: int | None, report: LeftOut
) -> tuple[float, float, float] | None:
    """Constant force, stiffness and damping of an actuator with its control held; None if it is not affine."""
    name = model.names["actuator"][a] or f"actuator {a}"
    gain, bias, dynamics = (int(model[f"actuator_{what}type"][a]) for what in ("gain", "bias", "dyn"))
    if gain == _GAIN_MUSCLE or bias == _BIAS_MUSCLE or dynamics == _DYN_MUSCLE:
        report.name("muscle", [name])
        return None
    if (
        gain not in (_GAIN_FIXED, _GAIN_AFFINE, _GAIN_PID)
        or bias not in (_BIAS_NONE, _BIAS_AFFINE)
        or dynamics in (_DYN_MOTOR, _DYN_PID, _DYN_USER)
    ):
        report.name("actuator that is neither a motor nor a servo", [name])
        return None
    b0, b1, b2 = model["actuator_biasprm"][a, :3].tolist() if bias == _BIAS_AFFINE else (0.0, 0.0, 0.0)
    u = _control(model, a, key)
    if gain == _GAIN_PID:
        inputs = iter(u)
        wanted = [
            next(inputs) if int(model["actuator_ctrlspec"][a]) & bit else 0.0
            for bit in (_PID_POSITION, _PID_VELOCITY, _PID_FORCE)
        ]
        return b0 - b1 * wanted[0] - b2 * wanted[1] + wanted[2], -b1, -b2
    g0, g1, g2 = model["actuator_gainprm"][a, :3].tolist()
    if gain == _GAIN_FIXED:
        g1 = g2 = 0.0
    return g0 * u[0] + b0, -(b1 + g1 * u[0]), -(b2 + g2 * u[0])


def _control(model: CompiledModel, a: int, key: int | None) -> list[float]:
    """Controls of an actuator, or the state of its integrator, clamped to their range."""
    start, count = int(model["actuator_ctrladr"][a]), int(model["actuator_ctrlnum"][a])
    state = int(model["actuator_actadr"][a])
    if int(model["actuator_dyntype"][a]) == _DYN_INTEGRATOR and state >= 0:
        value = float(model["key_act"][key, state]) if key is not None else 0.0
        if model["actuator_actlimited"][a]:
            value = float(np.clip(value, *model["actuator_actrange"][a]))
        return [value]
    values = model["key_ctrl"][key, start : start + count].tolist() if key is not None else [0.0] * count
    if model.disableflags & NO_CONTROL_CLAMP:
        return values or [0.0]
    return [
        float(np.clip(value, *model["actuator_ctrlrange"][c])) if model["actuator_ctrllimited"][c] else value
        for c, value in enumerate(values, start)
    ] or [0.0]
