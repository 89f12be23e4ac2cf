"""The helper process that runs MuJoCo's compiler: reads models on stdin, writes compiled arrays on stdout.

Malformed models can make the compiler abort or loop for ever; here that ends this process, not the user's.
Run as a script, with a temporary folder that it removes in the end. Needs mujoco and numpy only: it starts quickly.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Any, BinaryIO

MEMORY_LIMIT = 16 << 30  # bytes of address space; far above any real model

# What `mujoco_model` and its neighbours need of an MjModel.
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


def read_exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise EOFError
    return data


def read_message(stream: BinaryIO) -> tuple[dict[str, Any], list[bytes]]:
    """A JSON header and the binary parts whose sizes it lists."""
    header = json.loads(read_exactly(stream, int.from_bytes(read_exactly(stream, 8), "little")))
    return header, [read_exactly(stream, size) for size in header["sizes"]]


def write_message(stream: BinaryIO, header: dict[str, Any], parts: list[Any]) -> None:
    header["sizes"] = [memoryview(part).nbytes for part in parts]
    text = json.dumps(header).encode()
    stream.write(len(text).to_bytes(8, "little") + text)
    for part in parts:
        stream.write(part)
    stream.flush()


def compile_model(mujoco: Any, text: str, assets: dict[str, bytes]) -> tuple[dict[str, Any], list[Any]]:
    import numpy as np

    try:
        model = mujoco.MjModel.from_xml_string(text, assets)
    except Exception as error:  # whatever it is, the caller reports it as a fault of the file
        return {"error": str(error) or type(error).__name__}, []
    names = {}
    for kind in NAMED:
        table = getattr(model, f"name_{kind}adr")
        names[kind] = [
            model.names[start : model.names.index(b"\0", start)].decode(errors="replace")
            for start in table.tolist()
        ]
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
    }
    return header, [array.reshape(-1).view(np.uint8).data for array in arrays]


def main() -> None:
    # MuJoCo prints to the standard streams: keep the pipe to ourselves and give it the null device.
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    try:
        import resource
    except ImportError:  # Windows
        pass
    else:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        import mujoco
    except ImportError as error:
        read_message(requests)
        write_message(
            replies, {"error": f"Error: MuJoCo cannot be imported ({error}); install mujoco-core"}, []
        )
        return
    mujoco.set_mju_user_warning(
        lambda message: None
    )  # otherwise warnings go to a file in the working directory
    while True:
        try:
            header, parts = read_message(requests)
        except EOFError:
            return
        assets = dict(zip(header["assets"], parts[1:], strict=True))
        write_message(replies, *compile_model(mujoco, parts[0].decode(), assets))


if __name__ == "__main__":
    try:
        main()
    finally:
        # Our parent may be gone without a chance to clean up. It named the folder that it made for us.
        for folder in sys.argv[1:]:
            os.chdir(os.path.dirname(folder))
            shutil.rmtree(folder, ignore_errors=True)
