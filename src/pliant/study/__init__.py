"""Studies: thousands of variants of a mechanism, on the cores here or on a cluster, nothing lost.

>>> import pliant
>>> study = pliant.study.read("ladder.toml")  # doctest: +SKIP
>>> study.run().table  # doctest: +SKIP
"""

from pliant.study.definition import Study, read
from pliant.study.results import Results, load

__all__ = ["Results", "Study", "load", "read"]
