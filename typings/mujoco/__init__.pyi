# MuJoCo's bindings carry no type information: everything in them is Any.
from typing import Any

def __getattr__(name: str) -> Any: ...
