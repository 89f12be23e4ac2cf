"""The child process that runs MuJoCo's compiler: reads models on stdin, writes compiled arrays on stdout.

Malformed models can make the compiler abort or loop for ever; here that ends this process, not the user's. A request
is a header in JSON that names the assets, the text of the model, and the assets; a reply is a header that lists the
arrays, and the arrays. JSON and bytes rather than pickles: models are untrusted.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Any

from pliant.child import read_frame, take_pipes, write_frame

__all__ = ["main"]

MEMORY, MEMORY_PER_BYTE = (
    3 << 30,
    200,
)  # bytes of address space that a model may take, and more per byte of its files

SECONDS, SECONDS_PER_BYTE = 10.0, 5e-6  # of computing time likewise

# The arrays of an MjModel that `from_mujoco` and `servos` read.
_FIELDS = {
    "body": "parentid pos quat mass ipos iquat inertia jntadr jntnum mocapid gravcomp",
    "jnt": "type qposadr dofadr pos axis stiffness stiffnesspoly limited range springyield",
    "": "qpos0 qpos_spring",
    "dof": "damping dampingpoly armature frictionloss",
    "geom": "contype conaffinity group type bodyid dataid matid size pos quat rgba",
    "mat": "rgba",
    "mesh": "vertadr vertnum faceadr facenum vert face",
    "hfield": "nrow ncol size adr data",
    "site": "bodyid pos quat",
    "eq": "type obj1id obj2id objtype active0 data",
    "tendon": (
        "adr num stiffness stiffnesspoly damping dampingpoly lengthspring length0 limited "
        "frictionloss armature springyield"
    ),
    "wrap": "type objid prm",
    "actuator": (
        "trntype dyntype gaintype biastype ctrladr ctrlnum ctrlspec actadr trnid gainprm biasprm "
        "gear ctrllimited ctrlrange actlimited actrange damping dampingpoly armature group"
    ),
    "key": "qpos ctrl act mpos mquat",
}
FIELDS = [f"{kind}_{field}".lstrip("_") for kind, fields in _FIELDS.items() for field in fields.split()]
NAMED = ("body", "jnt", "eq", "tendon", "actuator", "key")


def _compile(mujoco: Any, text: str, assets: dict[str, bytes]) -> tuple[dict[str, Any], list[Any]]:
    """Header and arrays of a compiled model, or a header with MuJoCo's error."""
    import numpy as np

    try:
        model = mujoco.MjModel.from_xml_string(text, assets)
    except Exception as error:  # of any type: the caller reports it as a fault of the file
        return {"error": str(error) or type(error).__name__}, []
    names = {}
    for kind in NAMED:
        table = getattr(model, f"name_{kind}adr")
        names[kind] = [
            model.names[start : model.names.index(b"\0", start)].decode(errors="replace")
            for start in table.tolist()
        ]
    no_gravity = int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
    arrays = [np.ascontiguousarray(getattr(model, field)) for field in FIELDS]
    header = {
        "arrays": [
            [field, array.dtype.str, array.shape] for field, array in zip(FIELDS, arrays, strict=True)
        ],
        "names": names,
        "model": model.names[: model.names.index(b"\0")].decode(errors="replace"),
        "counts": {count: int(getattr(model, count)) for count in ("nflex", "nskin", "nplugin")},
        "disableflags": int(model.opt.disableflags),
        "disableactuator": int(model.opt.disableactuator),
        "gravity": [0.0] * 3 if model.opt.disableflags & no_gravity else model.opt.gravity.tolist(),
        "fluid": [model.opt.density, model.opt.viscosity, *model.opt.wind.tolist()],
    }
    return header, [array.reshape(-1).view(np.uint8).data for array in arrays]


def _limit(size: int) -> None:
    """Limit memory and computing time of this process for a model whose files have this many bytes.

    Limits that were set from outside, as on clusters, stay where they are lower.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime + SECONDS + SECONDS_PER_BYTE * size
    for kind, wanted in (
        (resource.RLIMIT_AS, _address_space() + MEMORY + MEMORY_PER_BYTE * size),
        (resource.RLIMIT_CPU, int(seconds) + 1),
    ):
        most = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


def _address_space() -> int:
    """Bytes of address space that this process takes now; 16 GiB where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 16 << 30


def main() -> None:
    """Serve requests until stdin ends; then remove the folder that `sys.argv` names, as our parent may be gone."""
    try:
        _serve()
    finally:
        for folder in sys.argv[1:]:
            os.chdir(os.path.dirname(folder))
            shutil.rmtree(folder, ignore_errors=True)


def _serve() -> None:
    requests, replies = take_pipes(silent=True)  # MuJoCo prints to the standard streams
    try:
        import resource
    except ImportError:  # Windows
        pass
    else:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    mujoco, missing = None, ""
    try:
        import mujoco
    except ImportError as error:
        missing = f"Error: MuJoCo cannot be imported ({error}); install mujoco-core"
    else:
        mujoco.set_mju_user_warning(lambda message: None)  # otherwise warnings go to a file
    while True:
        try:
            names = json.loads(read_frame(requests))["assets"]
            text = read_frame(requests).decode()
            assets = {name: read_frame(requests) for name in names}
        except EOFError:
            return
        _limit(len(text) + sum(map(len, assets.values())))
        header, arrays = ({"error": missing}, []) if missing else _compile(mujoco, text, assets)
        write_frame(replies, json.dumps(header).encode())
        for array in arrays:
            write_frame(replies, array, flush=False)
        replies.flush()
