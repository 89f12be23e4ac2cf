"""Build hook of the wheel: `make wheel` puts compiled kernels into it; without them it is a wheel for any platform."""

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = "PLIANT_WHEEL_KERNELS"  # environment: the folder of compiled kernels, see pliant.compilation.places


class CustomBuildHook(BuildHookInterface):
    """Includes a folder of machine code, and names the platform it is for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the kernels that the environment names."""
        folder = os.environ.get(KERNELS)
        if not folder or version == "editable":
            return
        if not any(Path(folder).glob("*/*.kernel")):
            raise FileNotFoundError(f"{KERNELS}: there are no compiled kernels in '{folder}'")
        build_data["force_include"][folder] = "pliant/compilation/shipped"
        build_data["pure_python"] = False
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        build_data["tag"] = f"{python}-{python}-{_platform()}"


def _platform() -> str:
    """Platform tag. Kernels call libc by name and nothing newer than what numba itself needs."""
    name = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return name.replace("linux_", "manylinux_2_28_", 1) if name.startswith("linux_") else name
