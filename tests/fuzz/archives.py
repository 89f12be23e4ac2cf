"""Surfaces for fuzzing files: structured mutations of mechanisms, models, blends, samplings and trajectories.

A file is taken apart into its description, its arrays and the mechanism inside; one of these is damaged, or the header
of an array, or the directory of the archive; then it is put together again and loaded. A file below 10 MB may take
SECONDS and MEMORY, and only pliant's errors may come out. What loads is used: a model takes a step.
"""

from __future__ import annotations

import io
import random
import sys
import zipfile
from pathlib import Path
from time import process_time
from typing import Any, ClassVar

import numpy as np

import pliant
from formats import mutation
from fuzz.surfaces import H, Surface, mechanism, model
from fuzz.values import damaged, pick
from pliant.formats import load

SECONDS, MEMORY = 10, 1 << 30  # of computing time, and bytes beyond those at the start
SHAPES = (
    "(1,)*65", "(" + "1," * 65 + ")", "(" + "1," * 32 + ")", "(0, 2**70)", f"(0, {2**70})", "(True,)", "(-1,)",
    f"({2**62},)", f"({2**31}, {2**31}, 4)", "(1.5,)", "'x'", "()", "(0,)", "[3]", "3", "(" * 300, "((3,),)", "(None,)",
    f"({10**4000},)", "(0, 0, 0)", "(-1, -3)",
)  # fmt: skip
KINDS = (
    "'<f8'",
    "'|O'",
    "'O'",
    "'<f4'",
    "'<i8'",
    "'|u1'",
    "'<U9'",
    "[('a', '<f8')]",
    "'<f8,<f8'",
    "'>f8'",
    "'|V8'",
    "None",
    "8",
)
NAMES = (
    ".",
    "../x.npy",
    "/etc/passwd",
    "about.npy",
    "q.npy",
    "x" * 60_000,
    "a\x00b.npy",
    "é中.npy",
    "a/b.npy",
    "about",
)


class Archives(Surface):
    """Files of one kind, damaged in many ways."""

    WEIGHTS: ClassVar[dict[str, float]] = {"do_damage_array": 3.0, "do_bomb": 0.1, "do_many_overlaps": 0.2}

    def begin(self) -> None:
        """Write a file, and take it apart."""
        self.path = Path("file.npz").absolute()
        self.make()
        with zipfile.ZipFile(self.path) as archive:
            self.entries = {name: archive.read(name) for name in archive.namelist()}
        self.whole = self.path.read_bytes()
        self.start = memory()

    def make(self) -> None:
        """Write a sound file."""
        raise NotImplementedError

    def use(self) -> None:
        """Load the file, and use what is in it."""
        raise NotImplementedError

    def check(self) -> None:
        """Files take little memory."""
        assert memory() - self.start < MEMORY

    def do_begin(self) -> None:
        self.path.write_bytes(self.whole)
        self.use()

    def do_collect_garbage(self) -> None:
        self.do_begin()

    def read(self, data: bytes) -> None:
        """Load a file of these bytes; it takes little time."""
        self.path.write_bytes(data)
        begin = process_time()
        try:
            self.use()
        finally:
            assert process_time() - begin < SECONDS

    def write(self, entries: dict[str, bytes], **words: Any) -> bytes:
        """Archive of entries."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", **words) as archive:
            for name, data in entries.items():
                archive.writestr(name, data)
        return out.getvalue()

    def replaced(self, name: str, data: bytes) -> bytes:
        """The archive with one entry replaced."""
        return self.write({**self.entries, name: data})

    @property
    def seed(self) -> int:
        """A number for Python's generator."""
        return int(self.rng.integers(2**31))

    def array(self, name: str) -> Any:
        """An entry as an array."""
        return np.load(io.BytesIO(self.entries[name]))

    # --- one call each

    def do_damage_bytes(self) -> None:
        self.read(mutation.damaged_bytes(self.whole, random.Random(self.seed)))

    def do_damage_array(self) -> None:
        name = pick(
            self.rng, [n for n in self.entries if not n.startswith(("about", "mechanism", "base_mechanism"))]
        )
        self.read(self.replaced(name, npy(damaged(self.rng, self.array(name)))))

    def do_damage_description(self) -> None:
        about = self.array("about.npy").tobytes().decode()
        text = mutation.damaged_json(about, self.seed)
        self.read(self.replaced("about.npy", npy(np.frombuffer(text, dtype=np.uint8))))

    def do_damage_mechanism(self) -> None:
        names = [n for n in self.entries if "mechanism" in n]
        if not names:
            return self.do_damage_description()
        name = pick(self.rng, names)
        text = mutation.damaged_json(self.array(name).tobytes().decode(), self.seed)
        return self.read(self.replaced(name, npy(np.frombuffer(text, dtype=np.uint8))))

    def do_damage_header(self) -> None:
        name = pick(self.rng, list(self.entries))
        self.read(self.replaced(name, self.header(self.entries[name])))

    def header(self, data: bytes) -> bytes:
        """An entry whose header is another one."""
        rng = self.rng
        content = data[10 + int.from_bytes(data[8:10], "little") :]
        shape, kind = pick(rng, SHAPES), pick(rng, KINDS)
        old = data[10 : len(data) - len(content)].decode()
        if rng.random() < 0.6:
            kind = old.partition("'descr': ")[2].partition(",")[0]
        order = pick(rng, ("False", "False", "True", "0", "None"))
        text = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}"
        text = pick(
            rng, (text, text, text, text[:-3], "", "{}", "[" * 5000, text.replace("shape", "shap"), text * 2)
        )
        version = pick(rng, (b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00"))
        coded = text.encode() + b"\n"
        size = len(coded) if rng.random() < 0.9 else int(rng.integers(2**16))
        length = (size % 2**16).to_bytes(2, "little") if version[0] == 1 else size.to_bytes(4, "little")
        keep = content if rng.random() < 0.8 else pick(rng, (b"", content[:-1], content * 2))
        return b"\x93NUMPY" + version + length + coded + keep

    def do_drop_entry(self) -> None:
        entries = dict(self.entries)
        entries.pop(pick(self.rng, list(entries)))
        self.read(self.write(entries))

    def do_add_entries(self) -> None:
        rng, entries = self.rng, dict(self.entries)
        count = int(pick(rng, (1, 1, 2, 3000)))
        contents = b"", b"x", npy(np.zeros(3)), npy(np.zeros((2, 0, 3)))
        for i in range(count):
            name = pick(rng, NAMES) if count < 3 else f"{i}.npy"
            entries[name] = pick(rng, contents)
        self.read(self.write(entries))

    def do_rename_entry(self) -> None:
        entries = dict(self.entries)
        name = pick(self.rng, list(entries))
        data = entries.pop(name)
        entries[pick(self.rng, (*NAMES, name.upper(), name[:-4], *entries))] = data
        self.read(self.write(entries))

    def do_repeat_entry(self) -> None:
        """Two entries of one name, of equal or of different content."""
        out, name = io.BytesIO(), pick(self.rng, list(self.entries))
        with zipfile.ZipFile(out, "w") as archive:
            for one, data in (
                *self.entries.items(),
                (name, self.entries[pick(self.rng, list(self.entries))]),
            ):
                archive.writestr(one, data)
        self.read(out.getvalue())

    def do_pack(self) -> None:
        method = pick(self.rng, (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
        self.read(self.write(self.entries, compression=method))

    def do_bomb(self) -> None:
        """A packed entry of many zeros."""
        name = pick(self.rng, list(self.entries))
        zeros = {**self.entries, name: self.entries[name][:128] + bytes(50_000_000)}
        self.read(self.write(zeros, compression=zipfile.ZIP_DEFLATED))

    def do_overlap(self) -> None:
        """Entries of the directory that share their bytes, or claim others."""
        rng, data = self.rng, bytearray(self.whole)
        places = [i for i in range(len(data) - 46) if data[i : i + 4] == b"PK\x01\x02"]
        for _ in range(int(pick(rng, (1, 1, 3, 10)))):
            one, other = pick(rng, places), pick(rng, places)
            field = pick(rng, (slice(42, 46), slice(20, 28), slice(8, 12), slice(16, 20), slice(28, 34)))
            if rng.random() < 0.6:
                data[one + field.start : one + field.stop] = data[other + field.start : other + field.stop]
            else:
                at = one + int(rng.integers(field.start, field.stop))
                data[at] = int(pick(rng, (0, 1, 8, 255, 127, data[at] ^ 1)))
        self.read(bytes(data))

    def do_many_overlaps(self) -> None:
        """A directory whose many entries are one and the same piece of the file, each under a name of its own."""
        out, big = io.BytesIO(), npy(np.zeros(200_000))
        with zipfile.ZipFile(out, "w") as archive:
            for name, data in self.entries.items():
                archive.writestr(name, data)
            archive.writestr("big.npy", big)
            last = archive.infolist()[-1]
            for i in range(int(pick(self.rng, (10, 3000)))):
                twin = zipfile.ZipInfo(f"{i:05d}.npy")
                twin.header_offset, twin.file_size, twin.compress_size = (
                    last.header_offset,
                    len(big),
                    len(big),
                )
                twin.CRC = last.CRC
                archive.filelist.append(twin)
        self.read(out.getvalue())


def npy(array: Any) -> bytes:
    """The bytes of an array file; of one of objects, its header over nothing."""
    out = io.BytesIO()
    if array.dtype == object:
        np.lib.format.write_array_header_1_0(
            out, {"descr": "|O", "fortran_order": False, "shape": array.shape}
        )
        return out.getvalue()
    np.save(out, array)
    return out.getvalue()


def memory() -> int:
    """Most bytes of memory that this process has had."""
    if sys.platform == "win32":
        return 0
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size


# --- kinds of files


class Mechanisms(Archives):
    """Mechanisms as archives of arrays."""

    def make(self) -> None:
        """Write one with a loop, shapes and limits."""
        pick(self.rng, (mechanism("loop"), mechanism("fixed"), mechanism("hand"))).save(self.path)

    def use(self) -> None:
        """Load it, and ask for poses."""
        np.asarray(load(self.path).reference_poses).sum()


class Models(Archives):
    """Reduced models."""

    def make(self) -> None:
        """Write one, on a fixed or a floating base."""
        model(pick(self.rng, ("fixed", "loop", "floating", "hand")), int(self.rng.integers(2))).save(
            self.path
        )

    def use(self) -> None:
        """Load it, and take a step."""
        pliant.ReducedSimulation(pliant.ReducedModel.load(self.path), H).step(2)


class Blends(Archives):
    """Blended models."""

    def make(self) -> None:
        """Write one."""
        model("fixed", 2).save(self.path)

    def use(self) -> None:
        """Load it, and take a step."""
        pliant.ReducedSimulation(pliant.BlendedModel.load(self.path), H).step(2)


class Trajectories(Archives):
    """Trajectories."""

    def make(self) -> None:
        """Write one."""
        pliant.simulate(mechanism("fixed"), "reduced", H).record(4).save(self.path)

    def use(self) -> None:
        """Load it, and read all of it."""
        np.asarray(pliant.Trajectory.load(self.path).poses).sum()


class Samplings(Archives):
    """Equilibria that a sampling goes on from."""

    def make(self) -> None:
        """Write one."""
        self.path.unlink(missing_ok=True)
        self.use()

    def use(self) -> None:
        """Go on with it."""
        few = {"candidates": 3, "held_out": 2, "budget": 2, "progress": False}
        pliant.sample(mechanism("fixed"), "link3", 5.0, resume=self.path, **few)


SURFACES: dict[str, type[Surface]] = {
    "files of mechanisms": Mechanisms,
    "files of models": Models,
    "files of blends": Blends,
    "files of samplings": Samplings,
    "files of trajectories": Trajectories,
}
