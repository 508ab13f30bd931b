"""The mapper ``program``: the mixed-integer program on a model of the machine, with a proven bound. The default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import model_validator

from cosa.analytical.constants import Constants, PublishedConstants
from cosa.common.errors import FieldError
from cosa.common.files import read_data
from cosa.common.options import option, read_by
from cosa.mappers.registry import Count, Gap, Mapper, MapperOptions, Run, Seconds, Seed, register
from cosa.model.arch import Architecture
from cosa.model.constraints import Constraints, load_constraints
from cosa.model.layer import Layer
from cosa.model.objectives import ObjectiveName
from cosa.model.schedule import Schedule

ModelName = Literal["network", "analytical", "published-machine"]


def read_constants(data: Any, source: str | None = None) -> Constants | PublishedConstants:
    """Constants from data; `kind` says of which model they are."""
    published = isinstance(data, dict) and data.get("kind") == "published_constants"
    return (PublishedConstants if published else Constants).from_data(data, source)


def read_constants_file(path: str | Path) -> Constants | PublishedConstants:
    """Constants from a file."""
    return read_constants(read_data(path), str(path))


class ProgramOptions(MapperOptions):
    """Of the program: what is minimised, in which model of the machine, over which space, and when it stops."""

    objective: ObjectiveName = option(
        "latency",
        "What is minimised: of the fastest the least energy, of the least energy the fastest, or the product.",
    )
    model: ModelName | None = option(
        None,
        "Cycles of the simulated machine, of Timeloop's accounting, or of the published simulator's machine; without, "
        "network where the architecture has a mesh.",
    )
    constants: Annotated[
        Constants | PublishedConstants | None, read_by("constants", read_constants_file, read_constants)
    ] = option(None, "Weights of the model's prediction, as nocsim calibrate writes them.")
    physical_only: bool = option(
        True, "Model published-machine: leave out what gains from its generator's gaps.", off="--any-loops"
    )
    constraints: Annotated[Constraints | None, read_by("constraints", load_constraints, Constraints.from_data)] = (
        option(
            None,
            "What the schedule must keep to: packaged constraints, or a file.",
            flag="--constrain",
            metavar="NAME|FILE",
            complete="cosa.model.constraints:constraint_names",
        )
    )
    pad_percent: float = option(
        0.0, "Pad dimensions by up to so much where that pays.", unit="percent", flag="--pad-percent", ge=0, le=100
    )
    bypass: Literal["fixed", "chosen"] = option("fixed", "Levels keep what the architecture says, or what pays.")
    remainders: bool = option(False, "Last tiles may be smaller; evaluated by the convention exact.")
    gap: Gap = option(0.01, "Distance from the proven bound, in linear units, at which to stop.", metavar="RATIO")
    time_limit_seconds: Seconds = option(
        60.0, "For everything together; the best by then is the answer.", unit="seconds"
    )
    rounds: Count = option(100, "Rounds of solving and tightening, at most; unlike time the same on any machine.")
    settle_ties: bool = option(
        True, "Latency: of the fastest schedules take the one with the least energy.", off="--any-fastest"
    )
    machine_bound: bool = option(
        True,
        "Latency of a machine: prove what no schedule runs below, besides the prediction's bound.",
        off="--no-machine-bound",
    )
    seed: Seed = option(0, "Seed of the solver.")
    threads: int = option(1, "Threads of the solver.", ge=1, le=1024)

    @model_validator(mode="after")
    def _consistent(self) -> ProgramOptions:
        if not self.physical_only and self.model != "published-machine":
            allowed = "true, without the model published-machine"
            raise FieldError(
                "goes with the model published-machine only", path="physical_only", value=False, allowed=allowed
            )
        if not self.settle_ties and self.objective != "latency":
            message = f"means nothing to the objective {self.objective}"
            raise FieldError(message, path="settle_ties", value=False, allowed="true, or the objective latency")
        if self.constants is not None and self.model is not None:
            kind = {"network": Constants, "published-machine": PublishedConstants}.get(self.model)
            if kind is None or not isinstance(self.constants, kind):
                allowed = "none with the model analytical" if kind is None else f"weights of the model {self.model}"
                raise FieldError("of another model", path="constants.kind", value=self.constants.kind, allowed=allowed)
        if self.bypass == "chosen" and self.model == "published-machine":
            allowed = "fixed: its generator knows one hierarchy"
            raise FieldError("not of the model published-machine", path="bypass", value="chosen", allowed=allowed)
        if self.remainders:
            only = {"model": "analytical, or none", "constraints": "none", "constants": "none", "pad_percent": "0"}
            for name, allowed in only.items():
                value = getattr(self, name)
                if value not in (None, 0, "analytical"):
                    raise FieldError("does not go with remainders", path=name, value=_short(value), allowed=allowed)
        return self


def _short(value: Any) -> Any:
    return value if isinstance(value, str | float) else f"a file of kind {value.kind}"


def _run(layer: Layer, architecture: Architecture, options: ProgramOptions, run: Run) -> list[Schedule]:
    from cosa.mappers.program_task import solve

    return [solve(layer, architecture, options, run)]


register(
    Mapper("program", ProgramOptions, _run, "mixed-integer program on a model of the machine, with a proven bound")
)
