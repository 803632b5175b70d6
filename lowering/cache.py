"""What searches found, kept on disk between runs: the same question to the same compiler has the same answer.

A question is a kind and everything that its answer depends on: the text of a group, the whole target, the objective,
every option, and the compiler itself (a digest of its sources). An entry is a file, named after the digest of its
question, which holds a digest of its content and the content as JSON. It is written beside its place and moved there
in one step, so that processes may read and write at once: they see all of an entry or none. What cannot be read, or
does not agree with its digest or its type, counts as absent; what cannot be written is not kept. So the cache changes
how long a compilation takes, and nothing else.

The folder is the platform's for caches, or the one that the environment variable TILEWRIGHT_CACHE names; `off` there
switches the cache off, as `switched_off` does for what runs inside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TypeVar

from platformdirs import user_cache_path
from pydantic import TypeAdapter, ValidationError

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

VARIABLE = "TILEWRIGHT_CACHE"
LIMIT = 256 << 10
"""Bytes of the entries of one of the 256 folders that they are spread over, 64 MiB together: a write looks at one
folder only. Beyond it those that were not used for longest go."""
_PARTS = ("dialects", "lowering", "runtime")
"""Packages whose sources decide what a search finds."""
_ROOT = __name__.split(".")[0]
_off: ContextVar[bool] = ContextVar("cache_off", default=False)


@contextmanager
def switched_off(off: bool = True) -> Generator[None]:
    """Neither reads nor writes the cache inside, if `off`."""
    before = _off.set(off or _off.get())
    try:
        yield
    finally:
        _off.reset(before)


def is_off() -> bool:
    """Whether the cache is left alone, by `switched_off` or by the environment."""
    return _off.get() or os.environ.get(VARIABLE) == "off"


def remembered(kind: str, question: Sequence[object], answer: TypeAdapter[_T], find: Callable[[], _T]) -> _T:
    """The answer that the cache has, or what `find` gives, which is then kept. What `find` raises is not.

    `question` is made of numbers, truth values, text and sequences of such.
    """
    if is_off():
        return find()
    store, key = Store(folder()), digest(kind, question)
    text = store.read(key)
    if text is not None:
        with contextlib.suppress(ValidationError):
            found = answer.validate_json(text)
            _log.debug("%s: found in the cache (%s)", kind, key)
            return found
    _log.debug("%s: not in the cache (%s)", kind, key)
    made = find()
    store.write(key, answer.dump_json(made))
    return made


def folder() -> Path:
    """Where entries are kept."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else user_cache_path("tilewright", appauthor=False)


def digest(kind: str, question: Sequence[object]) -> str:
    """The name of a question's entry."""
    return hashlib.sha256(json.dumps([compiler(), kind, list(question)]).encode()).hexdigest()


@lru_cache(maxsize=1)
def compiler() -> str:
    """A digest of the sources that decide what a search finds."""
    made = hashlib.sha256()
    for part in _PARTS:
        for name, text in sorted(_sources(part, resources.files(f"{_ROOT}.{part}"))):
            made.update(f"{name} {len(text)}\n".encode() + text)
    return made.hexdigest()


def _sources(path: str, inside: Traversable) -> Iterator[tuple[str, bytes]]:
    for entry in inside.iterdir():
        if entry.is_dir():
            yield from _sources(f"{path}/{entry.name}", entry)
        elif entry.name.endswith(".py"):
            yield f"{path}/{entry.name}", entry.read_bytes()


@dataclass(frozen=True)
class Store:
    """Entries in folders named by the first two letters of their keys, each of `limit` bytes at most (a little more
    while several processes write)."""

    folder: Path
    limit: int = LIMIT

    def path(self, key: str) -> Path:
        """Where an entry is, or would be."""
        return self.folder / key[:2] / f"{key}.json"

    def read(self, key: str) -> bytes | None:
        """The content of an entry; None where there is none or it is damaged."""
        path = self.path(key)
        try:
            head, _, content = path.read_bytes().partition(b"\n")
            if head.decode(errors="replace") != hashlib.sha256(content).hexdigest():
                _log.info("the cache entry '%s' is damaged and is not used", path)
                return None
            os.utime(path)  # the entries that are used stay
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.info("cannot read the cache entry '%s': %s", path, error.strerror)
            return None
        return content

    def write(self, key: str, content: bytes) -> None:
        """Puts an entry in its place, all of it or nothing."""
        path = self.path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, beside = tempfile.mkstemp(dir=path.parent, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
                os.replace(beside, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(beside)
                raise
            self.prune(path.parent)
        except OSError as error:
            _log.info("nothing is kept in the cache '%s': %s", self.folder, error.strerror)

    def prune(self, folder: Path) -> None:
        """Beyond the limit, removes what was not used for longest until three quarters of it are left."""
        found: list[tuple[float, int, Path]] = []
        for entry in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process has removed it
                state = entry.stat()
                found.append((state.st_mtime, state.st_size, entry))
        total = sum(size for _, size, _ in found)
        if total <= self.limit:
            return
        for _, size, entry in sorted(found):
            if total <= self.limit * 3 // 4:
                break
            entry.unlink(missing_ok=True)
            total -= size
