"""Results kept between runs, by a hash of everything that can change them; one JSON file a result."""

from __future__ import annotations

import hashlib
import json
import os
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cosa.common.errors import InputError
from cosa.common.files import write_atomic


def default_cache() -> Path:
    """Where results are kept: below ``XDG_CACHE_HOME``, else below the user's ``.cache``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cosa-nocsim"


def chosen_cache(folder: str | None) -> Path | None:
    """The folder that ``--cache`` names: none for ``none``, the default where it is not given.

    Raises
    ------
    InputError: it is named, and not a folder.
    """
    if folder and folder != "none" and Path(folder).exists() and not Path(folder).is_dir():
        raise InputError("not a folder", source="--cache", value=folder, allowed="a folder, or none")
    try:
        return None if folder == "none" else Path(folder) if folder else default_cache()
    except RuntimeError:  # a user without a home
        return None


@lru_cache(maxsize=4)
def source_digest(packages: tuple[str, ...]) -> str:
    """Digest of the sources of packages (``arch_configs.dram``: that folder): results of other code are left alone."""
    digest = hashlib.sha256()
    for package in packages:
        root, *inner = package.split(".")
        # Found, not imported: a package may load a compiler when it is, and a run from the cache needs none.
        found = find_spec(root)
        if found is None or found.submodule_search_locations is None:
            raise ModuleNotFoundError(f"no package {root}", name=root)
        folder = Path(next(iter(found.submodule_search_locations))).joinpath(*inner)
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".yaml"):
                digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def content_key(data: Any) -> str:
    """SHA-256 of plain data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def read_cached(cache: Path | None, key: str) -> dict[str, Any] | None:
    """The result of that key; None if there is none, none that is whole and the same as was written, or no cache."""
    if cache is None:
        return None
    try:
        found = json.loads((cache / f"{key}.json").read_text(encoding="utf-8"))
        data: dict[str, Any] = found["data"]
        return data if found["digest"] == content_key([key, json.dumps(data)]) else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def write_cached(cache: Path | None, key: str, data: dict[str, Any]) -> None:
    """Keep a result. A cache that can't be written costs time the next time, nothing else."""
    if cache is None:
        return
    try:
        cache.mkdir(parents=True, exist_ok=True)
        write_atomic(cache / f"{key}.json", json.dumps({"digest": content_key([key, json.dumps(data)]), "data": data}))
    except (OSError, InputError):
        return
