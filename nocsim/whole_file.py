"""Files that appear whole or not at all, also when they are too large to be held in memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from cosa.errors import InputError
from cosa.files import require_writable


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """A stream into a temporary file beside ``path``, which takes its place at the end of the block.

    If the block raises, ``path`` is left as it was. Pipes and devices are written as they are, a symbolic link stays
    one. Raises InputError if the place cannot be written.
    """
    require_writable(path)
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as stream:
                yield stream
            return
        target = Path(os.path.realpath(target))
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".nocsim-", suffix=".tmp")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
            mask = os.umask(0)  # mkstemp makes private files; give the result the usual mode
            os.umask(mask)
            temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", source=str(path)) from None
