"""`make bench`: every benchmark, or those named. Results go to the screen and to out/benchmarks.json."""

from __future__ import annotations

import json
import platform
import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
ALL = ("start", "statics", "reduced", "blended", "constrained", "quasistatic")


def main() -> None:
    names = sys.argv[1:] or ALL
    unknown = set(names) - set(ALL)
    if unknown:
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    machine = {"processor": platform.processor() or platform.machine(), "python": platform.python_version()}
    results = {"machine": machine}
    for name in names:
        print(f"== {name}")
        results[name] = import_module(name).run()
    out = Path("out")
    out.mkdir(exist_ok=True)
    (out / "benchmarks.json").write_text(json.dumps(results, indent=1))
    print(f"saved {out / 'benchmarks.json'}")


if __name__ == "__main__":
    main()
