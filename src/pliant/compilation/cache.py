"""`KernelCache`: machine code of one kernel, in one file per signature, from the package or compiled here."""

from __future__ import annotations

import hashlib
import os
import pickle
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numba.core import sigutils
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from pliant.compilation import linking, places, progress
from pliant.compilation.stamps import stamp

__all__ = ["SUFFIX", "KernelCache"]

SUFFIX = ".kernel"
_LINKED = ".linked"  # LLVM code that other kernels link, without machine code
_DIGEST = hashlib.sha256().digest_size
_SOURCES = 3  # versions of a kernel's sources whose machine code is kept
_ANNOTATION = 6  # in a reduced CompileResult: index of the annotated source, which is for people to read


class KernelCache(_Cache):
    """Cache of one kernel, in numba's terms.

    A file's name holds the kernel, a stamp of its sources, the processor (`any` in the package) and a hash of the
    signature; its content is a SHA-256 digest and a pickled `CompileResult`. A file that is missing, damaged or refused
    by numba is a miss: the kernel is compiled.
    """

    def __init__(self, function: Any, options: dict[str, Any]):
        self._function = function
        self._options = repr(sorted((key, _sorted(value)) for key, value in options.items()))
        self._prefix = f"{function.__module__.removeprefix('pliant.')}.{function.__qualname__}-"
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        """The folder that compiled kernels are written to."""
        folder = places.local()
        return None if folder is None else str(folder)

    def enable(self) -> None:
        """Load and save machine code."""
        self._enabled = True

    def disable(self) -> None:
        """Neither load nor save machine code."""
        self._enabled = False

    def flush(self) -> None:
        """Remove this kernel's files from the local folder."""
        for path in self._files():
            path.unlink(missing_ok=True)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Machine code for a signature; None if it has to be compiled."""
        target_context.refresh()
        if not self._enabled:
            return None
        for path in self._candidates(sig, target_context.codegen()):
            try:
                content = path.read_bytes()
            except OSError:
                continue
            if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
                progress.explain(f"'{path.name}' is damaged")
                continue
            try:
                return _rebuild(target_context, pickle.loads(content[_DIGEST:]), path.suffix)
            except Exception as error:  # of any type: compile the kernel instead
                progress.explain(f"'{path.name}' cannot be used: {error}")
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the machine code of a signature."""
        folder = places.local()
        if not self._enabled or folder is None or data.library.has_dynamic_globals or data.lifted:
            return
        try:
            path = folder / self._name(
                sig, _processor(data.codegen), _LINKED if linking.is_linked(data) else SUFFIX
            )
            payload = list(data._reduce())
            payload[_ANNOTATION] = ""
            content = dumps(tuple(payload))
            draft = path.with_suffix(f".{uuid.uuid4().hex}")
            draft.write_bytes(hashlib.sha256(content).digest() + content)
            os.replace(draft, path)
            self._prune()
        except OSError:
            return  # disk full, folder removed: the kernel will be compiled again in the next process

    def _candidates(self, sig: Any, codegen: Any) -> Iterator[Path]:
        """Files that may hold the code for a signature."""
        try:
            shipped, folder = places.shipped(), places.local()
            if shipped.folder is None and shipped.reason:
                progress.explain(shipped.reason)
            for suffix in (_LINKED, SUFFIX) if linking.is_for_callers() else (SUFFIX,):
                if shipped.folder is not None:
                    yield shipped.folder / self._name(sig, "any", suffix)
                if folder is not None:
                    yield folder / self._name(sig, _processor(codegen), suffix)
        except OSError:
            return  # no source files, no stamp to look for

    def _name(self, sig: Any, processor: str, suffix: str) -> str:
        arguments, result = sigutils.normalize_signature(sig)
        text = f"{arguments} {result} {self._options}"
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"{self._prefix}{stamp(self._function.__module__)}-{processor}-{key}{suffix}"

    def _files(self) -> list[Path]:
        """Files of this kernel that were compiled here, the newest first."""
        folder = places.local()
        if folder is None:
            return []
        found = [path for suffix in (SUFFIX, _LINKED) for path in folder.glob(f"{self._prefix}*{suffix}")]
        return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)

    def _prune(self) -> None:
        """Remove machine code of old sources; that of the latest few stays, for other versions that are in use."""
        known: list[str] = []
        for path in self._files():
            source = path.name.removeprefix(self._prefix).partition("-")[0]
            if source not in known:
                known.append(source)
            if known.index(source) >= _SOURCES:
                path.unlink(missing_ok=True)


def _rebuild(target: Any, payload: Any, suffix: str) -> CompileResult:
    """Compiled kernel of the content of a file with this suffix."""
    context = linking.LinkedContext(target) if suffix == _LINKED else target
    return CompileResult._rebuild(context, *payload)._replace(target_context=target)


def _sorted(value: Any) -> Any:
    return sorted(value) if isinstance(value, set | frozenset) else value


def _processor(codegen: Any) -> str:
    """Processor and features that code is generated for, as 8 hexadecimal digits."""
    return hashlib.sha256(repr(codegen.magic_tuple()).encode()).hexdigest()[:8]
