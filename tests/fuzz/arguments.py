"""Surface for fuzzing arguments: public functions and methods with one or two arguments replaced by hostile ones.

A table holds sound calls. Each call made here takes one of them and replaces an argument by a number that is extreme, a
value of another type or shape, a strange text, or an object of pliant that does not belong there. Calls save
files: no text names a place outside of the folder that the process runs in.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from fuzz.surfaces import H, Surface, mechanism, model
from fuzz.values import EXTREME, JUNK, pick
from pliant.study import Study, read
from pliant.study import load as load_results

HUGE = (10**9, 10**12, 2**62, 2**63, 2**64, 10**400, 10**5000, -(10**5000))
TEXTS = (
    "", " ", "\n", "\0", "a\x1b[31mb", "\ud800", "x" * 100_000, "world", "*", "[", "C:\\x", "\\\\a\\b", "a/b",
    "<script>", "link3\n", "%s{0}", "é中😀", "nan", "1e999", "con", "pipe", "missing/x",
)  # fmt: skip


class NoText:
    """Something that cannot be printed."""

    def __repr__(self) -> str:
        raise RuntimeError("this has no text")


@cache
def strangers() -> tuple[Any, ...]:
    """Values of other types, and objects of pliant in places where they do not belong."""
    deep: list[Any] = []
    for _ in range(2000):
        deep = [deep]
    return (
        *JUNK, *TEXTS, deep, NoText(), NoText, lambda *_: 1, range(3), iter([1, 2]), {"link3": NoText()},
        {"link3": deep}, {"link3": (0, 0, np.nan)}, {"link3": {}}, {"link3": {"force": "x"}}, {1: 2}, {None: (0, 0, 1)},
        Path(), Path("pipe"), {"link3"}, frozenset(), bytearray(3), memoryview(b"123"), np.float64("nan"),
        np.datetime64("now"), np.array(1 + 1j), np.zeros((0, 3)), np.zeros((3, 0)), np.full((4, 4), np.inf),
        np.ma.masked, Ellipsis, NotImplemented, slice(3), mechanism("fixed"), mechanism("floating"), model("fixed", 0),
        model("fixed", 2), pliant.shapes.sphere(0.1), pliant.World(H), simulation(),
        pliant.Configuration(mechanism("loop")), pliant.errors, Exception("x"),
    )  # fmt: skip


def simulation(engine: str = "reduced") -> Any:
    """A simulation of the chain."""
    return pliant.simulate(mechanism("fixed"), engine, H)


def builder() -> pliant.Builder:
    """Two bodies that are not joined yet."""
    b = pliant.Builder("two")
    b.body("a", mass=1.0, inertia=(1, 1, 1))
    b.body("b", mass=1.0, inertia=(1, 1, 1), position=(1, 0, 0))
    return b


def build(method: str) -> Callable[..., Any]:
    """A method of a builder, and the mechanism that it makes."""

    def make(**words: Any) -> Any:
        b = builder()
        getattr(b, method)(**words)
        b.fixed("held", "world", "a")
        if words.get("child") != "b":
            b.fixed("joined", "a", "b")
        if method in ("body", "bodies"):
            b.fixed_joints(
                ["c0", "d0"][: 1 + (method == "bodies")], "world", ["c", "d"][: 1 + (method == "bodies")]
            )
        return b.build()

    return make


def world() -> pliant.World:
    """A floor, a ball and a mechanism."""
    out = pliant.World(H)
    out.add_static("floor", pliant.shapes.plane(), position=(0, 0, -0.5))
    out.add_body("ball", pliant.shapes.sphere(0.03), position=(0, 1, -0.4))
    out.add(mechanism("fixed"), "arm")
    return out


def in_world(method: str, then: bool = True) -> Callable[..., Any]:
    """A method of a world, and a step."""

    def make(*arguments: Any, **words: Any) -> Any:
        w = world()
        getattr(w, method)(*arguments, **words)
        if then:
            w.step()
        return w

    return make


def of(make: Callable[[], Any], method: str, then: str = "") -> Callable[..., Any]:
    """A method of something that is made anew, and then another one."""

    def call(*arguments: Any, **words: Any) -> Any:
        what = make()
        out = getattr(what, method)(*arguments, **words)
        if then:
            getattr(what, then)()
        return out

    return call


def stepped(make: Callable[..., Any]) -> Callable[..., Any]:
    """A simulation and its first step."""

    def call(*arguments: Any, **words: Any) -> Any:
        s = make(*arguments, **words)
        s.step()
        return s

    return call


STUDY: dict[str, Any] = {
    "mechanism": "gallery:two_link",
    "parameters": {"k": {"stiffness": "*", "linear": [1, 2, 3]}},
    "outputs": {"c": {"compliance": "right"}},
    "results": "study.parquet",
}
LOAD = {"link3": (0, 0, 1.0)}
FEW: dict[str, Any] = {"candidates": 3, "held_out": 2, "budget": 2, "progress": False}
AXES, AT = {"anchor": (0, 0, 0), "axis": (0, 0, 1)}, {"parent": "a", "child": "b"}
SPRING = {"stiffness": 1.0, "damping": 0.1, "armature": 0.0, "rest": 0.0, "limits": (-1, 1), "reference": 0.0}
LONG = ("n", "every", "time", "stop", "most")
CALLED = ("act", "progress")


def sound() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Sound calls by name: a function and its arguments by name."""
    p, m = pliant, mechanism("fixed")
    one: Any = model("fixed", 0)
    blend: Any = model("fixed", 2)
    rest = pliant.Configuration(m)
    track = simulation().record(3)
    pose, body = (
        np.eye(4),
        {
            "name": "c",
            "mass": 1.0,
            "com": (0, 0, 0),
            "inertia": (1, 1, 1),
            "density": 10.0,
            "position": (0, 0, 1),
            "orientation": (1, 0, 0, 0),
            "shapes": [p.shapes.sphere(0.1)],
        },
    )
    motion = {"position": (0, 0, 1), "orientation": (1, 0, 0, 0)}
    matter = {"friction": 0.8, "restitution": 0.0, "rolling": 0.0, "compliance": 0.0}
    look = {**motion, "rgba": (1, 0, 0, 1)}
    wrench = {"body": "link3", "force": (0, 0, 1), "torque": (0, 0, 1), "point": (0, 0, 0), "frame": "world"}
    pull = {
        "body": "link3",
        "target": (0, 0, 1),
        "point": (0, 0, 0),
        "frequency": 2.0,
        "ratio": 1.0,
        "damping": 0.0,
        "key": "a",
    }
    out: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "simulate": (stepped(p.simulate), {"what": m, "engine": "reduced", "timestep": H, "gravity": None,
                                           "end_effectors": "link3", "sampling": None}),
        "simulate blended": (stepped(p.simulate), {"what": m, "engine": "blended", "timestep": H,
                                                   "end_effectors": "link3",
                                                   "sampling": {"candidates": 3, "held_out": 2, "budget": 2}}),
        "constrained": (stepped(p.ConstrainedSimulation), {
            "mechanism": m, "timestep": H, "gravity": (0, 0, -9.81), "stabilization": "newmark", "solver": None,
            "start": None, "tolerance": 1e-5}),
        "quasistatic": (stepped(p.QuasistaticSimulation), {
            "mechanism": m, "timestep": H, "gravity": (0, 0, -9.81), "tolerance": 0.01, "measure": "relative-joint",
            "weights": "radians", "implicit": True, "start": None}),
        "quasistatic in contact": (stepped(p.QuasistaticSimulation), {
            "mechanism": mechanism("hand"), "timestep": H, "obstacles": [p.shapes.plane(position=(0, 0, -0.05))],
            "friction": 0.5}),
        "adaptive": (stepped(p.AdaptiveSimulation), {
            "mechanism": m, "timestep": H, "gravity": (0, 0, -9.81), "tolerance": 0.01, "slow": None, "most": None,
            "keep": (), "interval": 8, "precision": 1e-5, "start": None}),
        "reduced": (stepped(p.ReducedSimulation), {"model": one, "timestep": H, "reconstruction": "joint",
                                                   "gravity": None, "threads": 1, "method": "auto"}),
        "batch": (stepped(p.ReducedBatch), {"model": one, "timestep": H, "copies": 2, "reconstruction": "joint",
                                            "gravity": None, "threads": 2, "method": "auto"}),
        "batch wrench": (of(lambda: p.ReducedBatch(one, H, 2), "apply_wrench", "step"), dict(wrench)),
        "blend": (p.blend, {"models": list(blend.models), "exponent": 6.0, "distance": "wrench", "matrices": "linear"}),
        "reduce": (p.reduce, {"mechanism": m, "end_effectors": "link3", "at": None, "projection": "exact",
                              "inertia": "condensed", "modes": 0, "default_stiffness": None, "rank_tolerance": 1e-9}),
        "reduce with reach": (p.reduce, {"mechanism": m, "end_effectors": "link3", "reach": 0.1, "tolerance": 0.1}),
        "sample": (p.sample, {"mechanism": m, "end_effectors": "link3", "wrenches": 2.0, "tolerance": 0.01, "seed": 0,
                              "inertia": "condensed", "exponent": 6.0, **FEW}),
        "equilibrium": (p.equilibrium, {"mechanism": m, "wrenches": LOAD, "gravity": None, "start": None,
                                        "limits": False}),
        "equilibria": (p.equilibria, {"mechanism": m, "loads": [LOAD, {}], "gravity": (0, 0, -1), "start": None,
                                      "limits": False, "threads": 1, "progress": False}),
        "equilibria of arrays": (p.equilibria, {"mechanism": m, "loads": {"link3": np.ones((2, 3))}, "threads": 2}),
        "path": (p.path, {"mechanism": m, "wrenches": LOAD, "gravity": None, "start": 0.0, "stop": 0.1, "step": 0.05}),
        "compliance_map": (p.compliance_map, {"mechanism": m, "end_effector": "link3", "joints": ["j0"], "points": 3,
                                              "ranges": {"j0": (-1, 1)}, "load": None, "frequency": True, "seed": 0}),
        "configuration": (p.Configuration, {"mechanism": m, "q": {"j0": 0.1}}),
        "assemble": (p.assemble, {"mechanism": mechanism("loop"), "coordinates": None}),
        "carry_over": (p.carry_over, {"old": simulation(), "new": simulation("constrained")}),
        "load": (p.load, {"path": "file.npz", "keyframe": None, "allow": (), "repair": False}),
        "save": (m.save, {"path": "out.npz"}),
        "save mjcf": (m.save, {"path": "out.xml"}),
        "save track": (track.save, {"path": "track.npz"}),
        "load model": (p.ReducedModel.load, {"path": "model.npz"}),
        "load blend": (p.BlendedModel.load, {"path": "blend.npz"}),
        "load track": (p.Trajectory.load, {"path": "track.npz"}),
        "trajectory": (p.Trajectory, {"mechanism": m, "time": track.time, "poses": track.poses}),
        "model at": (one.configuration, {"wrenches": LOAD, "method": "exact"}),
        "ellipsoid": (one.stiffness_ellipsoid, {"body": "link3", "of": "translation"}),
        "extend": (one.extend, {"configuration": rest}),
        "blend at": (blend.configuration, {"wrenches": LOAD, "method": "exact"}),
        "weights": (blend.weights, {"wrenches": LOAD}),
        "with_stiffness": (m.with_stiffness, {"pattern": "*", "stiffness": 1.0, "damping": 0.1}),
        "with_rest": (m.with_rest, {"pattern": "j0", "rest": 0.1}),
        "with_pose": (m.with_pose, {"coordinates": {"j0": 0.1}}),
        "with_end_effectors": (lambda body: m.with_end_effectors(body), {"body": "link3"}),
        "replace": (m.replace, {"name": "x", "mass": m.mass, "stiffness": m.stiffness, "body_names": m.body_names,
                                "joint_parents": m.joint_parents, "reference_poses": m.reference_poses,
                                "lower": m.lower, "end_effectors": ("link3",), "shape_table": m.shape_table}),
        "body_index": (m.body_index, {"name": "link3"}),
        "jacobian": (rest.jacobian, {"body": "link3", "frame": "body"}),
        "compliance": (lambda body: rest.compliance(body), {"body": "link3"}),
        "frequencies": (rest.frequencies, {"count": 2}),
        "gallery": (p.gallery.make, {"name": "helix", "links": 5}),
        "gallery lattice": (p.gallery.lattice, {"nx": 3, "ny": 3, "form": "grid", "cell": 0.02}),
        "gallery ladder": (p.gallery.ladder, {"rungs": 3, "form": "cells", "cell": 2.0}),
        "gallery millipede": (p.gallery.millipede, {"legs": 2, "leg_links": 2, "spine": 5}),
        "gallery net": (p.gallery.trampoline_net, {"n": 3, "size": 2.0, "tension": 200.0}),
        "gallery origami": (p.gallery.miura_ori, {"rows": 2, "columns": 2, "side": 0.05, "sector": 1.05, "fold": 0.7}),
        "gallery cable": (p.gallery.cable, {"joints": 3, "load": 100.0, "kind": "bushing", "length": 2.0,
                                            "stiffness": 10.0}),
        "gallery crane": (p.gallery.crane, {"segments": 2}),
        "gallery lift": (p.gallery.scissor_lift, {"stages": 2, "arm": 0.6, "angle": 0.6}),
        "gallery molecule": (p.gallery.molecule, {"links": 20, "seed": 0}),
        "gallery lattice3d": (p.gallery.lattice3d, {"nx": 2, "ny": 2, "nz": 2, "cell": 0.03}),
        "molecule": (p.Molecule, {
            "positions": np.eye(4, 3), "masses": 12.0, "bonds": [(0, 1), (1, 2), (2, 3)], "rotatable": None,
            "name": "m", "names": list("abcd"), "radii": 0.07, "stiffness": 50.0, "damping": None,
            "joints": list("xyz"), "outer": None, "closing": None, "ends": [3], "colours": (1, 0, 0, 1)}),
        "molecule places": (lambda poses: p.Molecule(np.eye(2, 3), 12.0, [(0, 1)]).places(poses), {"poses": [pose]}),
        "molecule where": (lambda atom: p.Molecule(np.eye(4, 3), 12.0, [(0, 1)]).where(atom), {"atom": "atom2"}),
        "molecule read": (p.Molecule.read, {"path": "file.npz", "torsions": ("phi", "psi")}),
        "scene": (p.scenes.make, {"name": "tank", "segments": 3, "force": 3000.0}),
        "scene of a load": (p.scenes.dropped_load, {"load": 5e3, "joints": 5, "drop": 0.2, "kind": "bushing"}),
        "study": (Study, {**STUDY, "seed": 0, "samples": None, "sampling": "random", "time_limit": None,
                          "folder": "."}),
        "study parameter": (lambda **given: Study(**{**STUDY, "parameters": {"k": given}}),
                            {"stiffness": "*", "linear": [1, 2, 3]}),
        "study output": (lambda **given: Study(**{**STUDY, "outputs": {"c": given}}),
                         {"compliance": "right", "entries": ["z.z"]}),
        "read": (read, {"path": "study.toml", "results": None}),
        "results": (load_results, {"path": "study.parquet"}),
        "picture": (p.picture, {"what": m, "path": None, "forces": LOAD, "reference": True, "view": (20.0, -60.0),
                                "title": None, "size": (90, 70)}),
        "view": (p.view, {"what": "x", "host": "127.0.0.1", "port": 0, "block": False}),
        "box": (p.shapes.box, {"half_extents": (1, 1, 1), **look}),
        "capsule": (p.shapes.capsule, {"radius": 1, "half_length": 1, **look}),
        "ellipsoid shape": (p.shapes.ellipsoid, {"semi_axes": (1, 1, 1), **look}),
        "height field": (p.shapes.height_field, {"heights": np.zeros((3, 3)), "size": (1, 1), "depth": None, **look}),
        "mesh": (p.shapes.mesh, {"vertices": np.eye(4)[:, :3], "faces": [(0, 1, 2), (0, 1, 3), (1, 2, 3)], **look}),
        "plane": (p.shapes.plane, {"half_x": 1.0, "half_y": 1.0, **look}),
        "rod": (p.shapes.rod, {"start": (0, 0, 0), "end": (0, 0, 1), "radius": 0.1, "rgba": (1, 0, 0, 1)}),
        "sphere": (p.shapes.sphere, {"radius": 0.1, "position": (0, 0, 0), "rgba": (1, 0, 0, 1)}),
        "world": (p.World, {"timestep": H, "gravity": (0, 0, -9.81), "margin": None, "sweeps": 200, "tolerance": 1e-6}),
        "world add": (in_world("add"), {"what": mechanism("floating"), "name": "more", "engine": None, **matter,
                                        "self_contact": False}),
        "world add_body": (in_world("add_body"), {**body, **matter, "velocity": (0, 0, 0), "spin": (0, 0, 0)}),
        "world add_static": (in_world("add_static"), {"name": "wall", "shapes": p.shapes.sphere(0.1), **motion,
                                                      **matter}),
        "world ignore": (in_world("ignore"), {"first": "ball", "second": "floor"}),
        "world pull": (in_world("pull"), {"body": "ball", "target": (0, 0, 0), "point": (0, 0, 0), "frequency": 2.0,
                                          "ratio": 1.0, "stiffness": None, "damping": 0.0}),
        "world release": (in_world("release"), {"body": "ball"}),
        "world switch": (in_world("switch"), {"name": "arm", "to": one}),
        "world detail": (in_world("detail"), {"name": "arm", "levels": [one, m], "error": 1e-3, "every": 0.1}),
        "world record": (in_world("record"), {"n": 2, "every": 1, "act": None, "progress": False}),
        "world pose": (in_world("pose", False), {"body": "ball"}),
        "world state": (lambda value: setattr(world(), "state", value), {"value": world().state}),
    }  # fmt: skip
    for engine in ("reduced", "constrained", "quasistatic", "adaptive"):
        make = partial(simulation, engine)
        out |= {
            f"{engine} {name}": (of(make, method, "step"), words)
            for name, method, words in (
                ("step", "step", {"n": 1}),
                ("record", "record", {"n": 2, "every": 1, "act": None, "progress": False}),
                ("wrench", "apply_wrench", wrench),
                ("motor", "set_motor", {"joint": "j0", "torque": 0.1}),
                ("pull", "pull", pull),
                ("release", "release", {"body": "link3"}),
                ("pose", "pose", {"body": "link3"}),
                ("twist", "twist", {"body": "link3", "point": (0, 0, 0), "frame": "world"}),
                ("follow", "follow", {"other": simulation()}),
            )
        }
        out |= {
            f"{engine} {word}": (
                lambda value, word=word, make=make: setattr(make(), word, value),
                {"value": {"j0": 0.1}},
            )
            for word in ("q", "velocity", "state")
        }
        if engine in ("quasistatic", "adaptive"):
            out[f"{engine} tolerance"] = (
                lambda value, make=make: setattr(make(), "tolerance", value),
                {"value": 0.1},
            )
    out |= {
        "reduced switch": (of(simulation, "switch", "step"), {"model": blend}),
        "reduced impulse": (of(simulation, "apply_impulse", "step"), {"body": "link3", "impulse": (0, 0, 1),
                                                                      "point": None}),
        "reduced response": (of(simulation, "impulse_response"), {"body": "link3", "point": None, "of": None,
                                                                  "of_point": None}),
        "reduced base": (of(lambda: p.simulate(mechanism("floating"), "reduced", H, end_effectors="link3"), "move_base",
                            "step"), {"pose": pose, "velocity": (0, 0, 0), "spin": (0, 0, 0)}),
        "reduced coordinates": (lambda value: setattr(simulation(), "coordinates", value), {"value": np.zeros(5)}),
        "constrained motor": (of(partial(simulation, "constrained"), "set_motor", "step"), {
            "joint": "j0", "torque": 0.1, "target": 0.0, "stiffness": 1.0, "velocity": 0.0, "damping": 0.1}),
        "settle": (of(partial(simulation, "constrained"), "settle"), {"time": 0.1, "tolerance": 1e-3}),
        "refine": (of(partial(simulation, "quasistatic"), "refine"), {"budget": 0.1}),
        "build body": (build("body"), body),
        "build bodies": (build("bodies"), {"names": ["c", "d"], "mass": (1, 1), "inertia": np.ones((2, 3)),
                                           "position": np.zeros((2, 3)), "density": 10.0, "shapes": (), "look": None}),
        "build hinge": (build("hinge"), {"name": "j", **AT, **AXES, **SPRING}),
        "build slide": (build("slide"), {"name": "j", **AT, **AXES, **SPRING}),
        "build ball": (build("ball"), {"name": "j", **AT, "anchor": (0, 0, 0), "stiffness": 1.0, "damping": 0.1}),
        "build universal": (build("universal"), {"name": "j", **AT, "anchor": (0, 0, 0), "axes": [(1, 0, 0), (0, 1, 0)],
                                                 "stiffness": 1.0}),
        "build planar": (build("planar"), {"name": "j", **AT, "anchor": (0, 0, 0), "axes": [(1, 0, 0), (0, 1, 0)]}),
        "build fixed": (build("fixed"), {"name": "j", **AT}),
        "build free": (build("free"), {"name": "j", "parent": "world", "child": "b", "stiffness": 1.0}),
        "build bushing": (build("bushing"), {"name": "j", **AT, "anchor": (0, 0, 0), "stiffness": 1.0}),
        "build stack": (build("stack"), {"name": "j", **AT, "primitives": [("hinge", (0, 0, 1), (0, 0, 0))],
                                         "dof_names": None, "stiffness": 1.0}),
        "build hinges": (build("hinges"), {"names": ["j"], "parents": ["a"], "children": ["b"], "anchor": [(0, 0, 0)],
                                           "axis": [(0, 0, 1)], "stiffness": 1.0}),
        "build couple": (coupled("couple"), {"coefficients": {"j": 1.0, "k": 1.0}, "offset": None, "name": None}),
        "build tendon": (coupled("tendon"), {"name": "t", "coefficients": {"j": 1.0}, "stiffness": 1.0, "damping": 0.1,
                                             "rest": None}),
        "builder": (p.Builder, {"name": "two"}),
        "world_shape": (build("world_shape"), {"shape": p.shapes.sphere(0.1)}),
    }  # fmt: skip
    return out


def coupled(method: str) -> Callable[..., Any]:
    """A coupling or tendon between two hinges."""

    def make(**words: Any) -> Any:
        b = builder()
        b.hinge("j", "world", "a", **AXES, stiffness=1.0)
        b.hinge("k", "a", "b", **AXES, stiffness=1.0)
        getattr(b, method)(**words)
        return b.build()

    return make


class Arguments(Surface):
    """Public functions and methods, with one or two arguments replaced by what does not belong there."""

    def begin(self) -> None:
        """Make the sound calls; all of them work."""
        if hasattr(os, "mkfifo") and not Path("pipe").exists():
            os.mkfifo("pipe")
        Path("study.toml").write_text(
            'mechanism = "gallery:two_link"\n[parameters.k]\nstiffness = "*"\nvalues = [1, 2]\n'
            '[outputs.c]\ncompliance = "right"\n',
            encoding="utf-8",
        )
        model("fixed", 0).save("model.npz")
        model("fixed", 2).save("blend.npz")
        mechanism("fixed").save("file.npz")
        simulation().record(3).save("track.npz")
        self.sound = sound()
        self.calls = [f"do_{name}" for name in self.sound]

    def __getattr__(self, word: str) -> Any:
        if not word.startswith("do_"):
            raise AttributeError(word)
        return partial(self.call, word.removeprefix("do_"))

    def call(self, name: str) -> None:
        """Make one of the calls with one argument or two replaced."""
        rng = self.rng
        function, words = self.sound[name]
        words = dict(words)
        for _ in range(int(pick(rng, (0, 1, 1, 1, 2)))):
            word = pick(rng, list(words))
            kind = rng.random()
            if kind < 0.25:
                value = pick(rng, EXTREME)
            elif kind < 0.4:
                value = pick(rng, HUGE)
            else:
                value = pick(rng, strangers())
            endless = word in LONG and isinstance(value, int | float) and 1000 < value < math.inf
            if endless or (word in CALLED and callable(value)):
                continue  # so many steps take as long as they are asked to; what a function raises is its own
            words[word] = value
        function(**words)


SURFACES: dict[str, type[Surface]] = {"arguments": Arguments}
