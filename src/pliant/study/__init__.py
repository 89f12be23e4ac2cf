"""Parameter studies: thousands of variants of a mechanism, on this machine or a cluster, one table of results.

>>> import pliant
>>> study = pliant.study.read("ladder.toml")  # doctest: +SKIP
>>> study.run().table  # doctest: +SKIP
"""

from pliant.study.results import Results, load
from pliant.study.study import Study, read

__all__ = ["Results", "Study", "load", "read"]
