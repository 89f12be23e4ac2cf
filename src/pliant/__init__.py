"""pliant: compliant articulated mechanisms: rigid links, springy joints, closed loops.

>>> import pliant
>>> arm = pliant.gallery.helix(50)
>>> print(pliant.equilibrium(arm, {"link50": (0, 0, -100)}).summary())  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pliant import errors, shapes, spatial
from pliant.mechanism import Builder, Mechanism, Molecule

if TYPE_CHECKING:
    from pliant import gallery, scenes, study
    from pliant.camera import Camera
    from pliant.continuation import path
    from pliant.engines.adaptive import AdaptiveSimulation
    from pliant.engines.constrained import ConstrainedSimulation
    from pliant.engines.quasistatic import QuasistaticSimulation
    from pliant.engines.reduced import (
        BlendedModel,
        ReducedBatch,
        ReducedModel,
        ReducedSimulation,
        blend,
        reduce,
        sample,
    )
    from pliant.engines.simulate import simulate
    from pliant.engines.simulation import Simulation
    from pliant.engines.trajectory import Trajectory
    from pliant.engines.transfer import carry_over
    from pliant.formats import load
    from pliant.mechanism.loop_closure import assemble
    from pliant.statics import Configuration, Equilibria, equilibria, equilibrium
    from pliant.viewer import picture, view
    from pliant.workspace import ComplianceMap, compliance_map
    from pliant.world import World

__all__ = [
    "AdaptiveSimulation",
    "BlendedModel",
    "Builder",
    "Camera",
    "ComplianceMap",
    "Configuration",
    "ConstrainedSimulation",
    "Equilibria",
    "Mechanism",
    "Molecule",
    "QuasistaticSimulation",
    "ReducedBatch",
    "ReducedModel",
    "ReducedSimulation",
    "Simulation",
    "Trajectory",
    "World",
    "assemble",
    "blend",
    "carry_over",
    "compliance_map",
    "equilibria",
    "equilibrium",
    "errors",
    "gallery",
    "load",
    "path",
    "picture",
    "reduce",
    "sample",
    "scenes",
    "shapes",
    "simulate",
    "spatial",
    "study",
    "view",
]
__version__ = "0.1.0"

# What needs numba, scipy or MuJoCo is imported when first used: `import pliant` stays quick.
_LAZY = {
    "AdaptiveSimulation": "pliant.engines.adaptive",
    "BlendedModel": "pliant.engines.reduced",
    "Camera": "pliant.camera",
    "ComplianceMap": "pliant.workspace",
    "Configuration": "pliant.statics",
    "ConstrainedSimulation": "pliant.engines.constrained",
    "Equilibria": "pliant.statics",
    "QuasistaticSimulation": "pliant.engines.quasistatic",
    "ReducedBatch": "pliant.engines.reduced",
    "ReducedModel": "pliant.engines.reduced",
    "ReducedSimulation": "pliant.engines.reduced",
    "Simulation": "pliant.engines.simulation",
    "Trajectory": "pliant.engines.trajectory",
    "World": "pliant.world",
    "assemble": "pliant.mechanism.loop_closure",
    "blend": "pliant.engines.reduced",
    "carry_over": "pliant.engines.transfer",
    "compliance_map": "pliant.workspace",
    "equilibria": "pliant.statics",
    "equilibrium": "pliant.statics",
    "gallery": "pliant.gallery",
    "load": "pliant.formats",
    "path": "pliant.continuation",
    "picture": "pliant.viewer",
    "reduce": "pliant.engines.reduced",
    "sample": "pliant.engines.reduced",
    "scenes": "pliant.scenes",
    "simulate": "pliant.engines.simulate",
    "study": "pliant.study",
    "view": "pliant.viewer",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'pliant' has no attribute '{name}'")
    module = import_module(_LAZY[name])
    return module if _LAZY[name] == f"pliant.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
