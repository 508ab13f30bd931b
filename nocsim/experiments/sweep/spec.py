"""The file of a sweep: axes, which of them vary together, and conditions on the points."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PrivateAttr, field_validator, model_validator

from cosa.common.errors import FieldError, InputError, nearest_of
from cosa.common.files import WHOLE, FileModel, Model, plain_data, read_data

if TYPE_CHECKING:
    from nocsim.experiments.sweep.points import SweepPoint
    from nocsim.experiments.sweep.result import SweepResult

SPECIAL_AXES = ("architecture", "layer", "network", "mapper", "objective")
"""Axes that are no field of an architecture; besides these ``options.NAME`` of the mapper."""

Watch = Callable[["SweepCounts"], None]
"""Called now and then while a sweep runs."""


class SweepCounts(Model):
    """How far a sweep is: points in all, finished, failed, under way (here or in another run)."""

    points: int
    done: int
    failed: int
    running: int

    @property
    def left(self) -> int:
        """Points neither finished nor failed."""
        return self.points - self.done - self.failed


class Sweep(FileModel):
    """Axes over layers, mappers and any field of an architecture, and the points they span.

    An axis is a list of values, or one value. Axes that `zip` names together vary together, all others are crossed. Of
    the points only those are run that meet all conditions of `where`. Without `simulate` points are scheduled and
    evaluated analytically only.

    Examples
    --------
    >>> from nocsim import Sweep
    >>> sweep = Sweep(axes={"network": "dlrm", "noc.mesh": ["2x2", "4x4"]}, where=["layer.K > 100"])
    >>> len(sweep.points())
    8
    """

    kind: Literal["sweep"] = "sweep"
    schema_version: Annotated[Literal[1], WHOLE] = 1
    name: str = Field(default="sweep", min_length=1, max_length=100, pattern=r"^[\w.+-]+$")
    description: str = ""
    axes: dict[str, Any] = Field(min_length=1)
    zip: tuple[tuple[str, ...], ...] = ()
    where: tuple[str, ...] = ()
    simulate: bool = True

    _file: Path | None = PrivateAttr(default=None)

    @field_validator("axes", mode="before")
    @classmethod
    def _plain_axes(cls, axes: Any) -> Any:
        return plain_data(axes, "Sweep", "axes") if isinstance(axes, dict) else axes

    @model_validator(mode="after")
    def _consistent(self) -> Sweep:
        for name, values in self.axes.items():
            if isinstance(values, list) and not values:
                raise FieldError("an axis without values", path=f"axes.{name}", value=values, allowed="one or more")
            shown: set[str] = set()
            for value in self.values(name):
                if repr(value) in shown:
                    raise FieldError(f"the value {value!r} is given twice", path=f"axes.{name}")
                shown.add(repr(value))
        if ("layer" in self.axes) == ("network" in self.axes):
            allowed = "one of the axes layer and network"
            both = "both" if "layer" in self.axes else "neither"
            raise FieldError(f"there is {both} of layer and network", path="axes", allowed=allowed)
        seen: set[str] = set()
        for number, group in enumerate(self.zip):
            path = f"zip[{number}]"
            for name in group:
                if name not in self.axes:
                    near = nearest_of(name, list(self.axes))
                    allowed = ", ".join(self.axes) + (f" (did you mean {near}?)" if near else "")
                    raise FieldError("no such axis", path=path, value=name, allowed=allowed)
                if name in seen:
                    raise FieldError("the axis stands there twice", path=path, value=name)
                seen.add(name)
            lengths = {name: len(self.values(name)) for name in group}
            if len(set(lengths.values())) != 1:
                each = ", ".join(f"{name} {length}" for name, length in lengths.items())
                raise FieldError(f"axes of different length ({each})", path=path, allowed="axes of one length")
        return self

    @classmethod
    def from_file(cls, path: str | Path) -> Sweep:
        """Read a YAML or JSON file; files that it names are looked for in its folder.

        Raises
        ------
        InputError: the file is missing or wrong.
        """
        found = cls.from_data(read_data(path), source=str(path))
        found._file = Path(path)
        return found

    @property
    def folder(self) -> Path | None:
        """The folder of the sweep's file, None if it was made in Python."""
        return self._file.parent if self._file is not None else None

    @property
    def source(self) -> str:
        """What errors call it: its file, else its name."""
        return str(self._file) if self._file is not None else self.name

    def values(self, axis: str) -> list[Any]:
        """The values of an axis, as they stand in the file."""
        values = self.axes[axis]
        return values if isinstance(values, list) else [values]

    def points(self) -> list[SweepPoint]:
        """All points, in the order of the axes, the last one varying fastest.

        Raises
        ------
        InputError: an axis, a value or a condition is wrong; no point is left.
        """
        from nocsim.experiments.sweep.points import expand

        return expand(self)

    def run(
        self,
        results: str | Path,
        *,
        workers: int = 1,
        scheduler: str | None = None,
        retry_failed: bool = False,
        watch: Watch | None = None,
    ) -> SweepResult:
        """Run all points that the file of results does not hold yet.

        Parameters
        ----------
        results: SQLite file; made if there is none.
        workers: processes at a time.
        scheduler: ``dask://host:port`` of a dask.distributed cluster to run on instead.
        retry_failed: run points that failed before once more.
        watch: called now and then with how far it is.

        Returns
        -------
        All points of this sweep, failed ones included.

        Raises
        ------
        InputError: the sweep, an argument or the file of results is wrong.
        KeyboardInterrupt: Ctrl-C; what was finished is kept.
        """
        from nocsim.experiments.sweep.run import run_sweep

        return run_sweep(self, results, workers=workers, scheduler=scheduler, retry_failed=retry_failed, watch=watch)


def sweep_names() -> list[str]:
    """Names of the sweeps that travel with the package."""
    folder = resources.files("arch_configs") / "sweeps"
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def load_sweep(name_or_path: str | Path) -> Sweep:
    """A sweep by packaged name (``pe_4x``) or by file.

    Raises
    ------
    InputError: no such name or file, or the file is wrong.
    """
    text = str(name_or_path)
    names = sweep_names()
    if text in names:
        with resources.as_file(resources.files("arch_configs") / "sweeps" / f"{text}.yaml") as path:
            return Sweep.from_file(path)
    if not Path(text).suffix and not Path(text).is_file():
        allowed = ", ".join(names) + ", or a YAML or JSON file"
        raise InputError("no such sweep", source="sweep", value=text, allowed=allowed, nearest=nearest_of(text, names))
    return Sweep.from_file(text)
