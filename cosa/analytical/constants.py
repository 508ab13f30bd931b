"""The weights with which the network model predicts cycles, and the runs they were fitted on."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cosa.files import WHOLE, FileModel, Model

Weight = Annotated[float, Field(ge=0, le=1e6)]


class FitRun(Model):
    """One simulated schedule: the `terms` whose weights were fitted, cycles of the run and of the fit.

    `residual`: log(simulated / predicted).
    """

    layer: str
    schedule_hash: str
    terms: dict[str, float]
    simulated_cycles: int
    predicted_cycles: float
    residual: float


class Fit(Model):
    """Where fitted weights come from.

    `standard_deviation`: of the residuals; `left_out_standard_deviation`: of those of every layer with weights fitted
    on the others (null: too few layers).
    """

    architecture: str
    architecture_hash: str
    version: str
    seed: int
    standard_deviation: float
    left_out_standard_deviation: float | None
    runs: tuple[FitRun, ...]


class Constants(FileModel):
    """Weights of the prediction: the largest load (`floor`), single loads, one step, the last tile, and every step.

    The defaults were fitted on runs of `simba_4x4` (docs/reference/machine-program.md); all but `cycles_per_step` are
    cycles a flit or cycles a cycle. `dram_bytes_per_cycle`: what the DRAM's data bus carries (null: its port alone
    counts). `fit`: the runs that they were fitted on.
    """

    kind: Literal["network_constants"] = "network_constants"
    schema_version: Annotated[Literal[1], WHOLE] = 1
    floor: Weight = 0.6
    compute: Weight = 0.02
    dram_out: Weight = 0.14
    dram_in: Weight = 0.58
    to_pes: Weight = 0.38
    reloads: Weight = 0.23
    first_step: Weight = 0.8
    last_out: Weight = 0.6
    cycles_per_step: Weight = 30.0
    dram_bytes_per_cycle: Annotated[float, Field(gt=0)] | None = None
    fit: Fit | None = None
