"""The helper process that runs MuJoCo's compiler: reads models on stdin, writes compiled arrays on stdout.

Malformed models can make the compiler abort or loop for ever; here that ends this process, not the user's.
Run as a script. It needs mujoco and numpy only, so it starts quickly.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, BinaryIO

MEMORY_LIMIT = 16 << 30  # bytes of address space; far above any real model

# What `mujoco_model` and its neighbours need of an MjModel.
FIELDS = """
body_parentid body_pos body_quat body_mass body_ipos body_iquat body_inertia body_jntadr body_jntnum body_mocapid
body_gravcomp body_plugin jnt_type jnt_qposadr jnt_dofadr jnt_pos jnt_axis jnt_stiffness jnt_stiffnesspoly jnt_limited
jnt_range jnt_springyield qpos0 qpos_spring dof_damping dof_dampingpoly dof_armature dof_frictionloss
geom_type geom_bodyid geom_dataid geom_matid geom_size geom_pos geom_quat geom_rgba mat_rgba
mesh_vertadr mesh_vertnum mesh_faceadr mesh_facenum mesh_vert mesh_face site_bodyid site_pos site_quat
eq_type eq_obj1id eq_obj2id eq_objtype eq_active0 eq_data
tendon_adr tendon_num tendon_stiffness tendon_stiffnesspoly tendon_damping tendon_dampingpoly tendon_lengthspring
tendon_length0 tendon_limited tendon_frictionloss tendon_armature tendon_springyield wrap_type wrap_objid wrap_prm
actuator_trntype actuator_dyntype actuator_gaintype actuator_biastype actuator_ctrladr actuator_ctrlnum
actuator_ctrlspec actuator_actadr actuator_trnid actuator_gainprm actuator_biasprm actuator_gear actuator_ctrllimited
actuator_ctrlrange actuator_actlimited actuator_actrange actuator_damping actuator_dampingpoly actuator_armature
actuator_group key_qpos key_ctrl key_act key_mpos key_mquat
""".split()
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
        names[kind] = [model.names[start : model.names.index(b"\0", start)].decode(errors="replace") for start in table.tolist()]
    arrays = [np.ascontiguousarray(getattr(model, field)) for field in FIELDS]
    header = {
        "arrays": [[field, array.dtype.str, array.shape] for field, array in zip(FIELDS, arrays, strict=True)],
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
    import mujoco

    mujoco.set_mju_user_warning(lambda message: None)  # otherwise warnings go to a file in the working directory
    while True:
        try:
            header, parts = read_message(requests)
        except EOFError:
            return
        assets = dict(zip(header["assets"], parts[1:], strict=True))
        write_message(replies, *compile_model(mujoco, parts[0].decode(), assets))


if __name__ == "__main__":
    sys.exit(main())
