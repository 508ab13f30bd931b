"""The weights with which the network model predicts cycles, and the runs they were fitted on."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cosa.common.files import WHOLE, FileModel, Model

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
    """Weights of the prediction: the largest load (`floor`), single loads, reductions, what shares links, weights that
    keep inputs waiting, the first and the last tile, and every step.

    The defaults were fitted on runs of `simba_4x4` (docs/reference/machine-program.md); all but `cycles_per_step` are
    cycles a flit or cycles a cycle. `dram_bytes_per_cycle`: what the DRAM's data bus carries (null: its port alone
    counts). `fit`: the runs that they were fitted on.
    """

    kind: Literal["network_constants"] = "network_constants"
    schema_version: Annotated[Literal[1], WHOLE] = 1
    floor: Weight = 0.76
    compute: Weight = 0.04
    dram_out: Weight = 0.07
    dram_in: Weight = 0.33
    to_pes: Weight = 0.17
    reloads: Weight = 0.33
    reductions: Weight = 0.06
    shared: Weight = 0.24
    late: Weight = 0.16
    first_in: Weight = 1.1
    last_out: Weight = 1.8
    cycles_per_step: Weight = 0.5
    dram_bytes_per_cycle: Annotated[float, Field(gt=0)] | None = None
    fit: Fit | None = None

    def floor_alone(self) -> Constants:
        """The floor as it is, and the cycles of every step; no other load weighs anything."""
        others = type(self).model_fields.keys() - {
            "kind",
            "schema_version",
            "floor",
            "cycles_per_step",
            "dram_bytes_per_cycle",
            "fit",
        }
        return self.model_copy(update=dict.fromkeys(others, 0.0) | {"floor": 1.0})


class PublishedConstants(FileModel):
    """Weights of the prediction for the machine of the published simulator, and its two times of a DRAM packet.

    `largest`: of the busiest resource; the others, of single loads, are cycles a flit or cycles a cycle, of the reads
    cycles of reading a cycle. `cycles_per_dram_packet`: mean of a read with all that comes with it, such as refreshes;
    `least_cycles_per_dram_packet`: of one in a quiet network, for bounds. Both were measured with DRAMSim2's DDR2-667
    at one DRAM clock a cycle. The weights were fitted on replays (docs/reference/machine-program.md).
    """

    kind: Literal["published_constants"] = "published_constants"
    schema_version: Annotated[Literal[1], WHOLE] = 1
    largest: Weight = 0.71
    compute: Weight = 0.09
    outputs_to_buffer: Weight = 0.17
    outputs_to_dram: Weight = 0.22
    to_pes: Weight = 0.28
    reads_to_buffer: Weight = 0.3
    reads_to_pes: Weight = 0.26
    reductions: Weight = 0.2
    partial_sums: Weight = 1.0
    cycles_per_step: Weight = 50.0
    cycles_per_dram_packet: Annotated[float, Field(ge=5, le=1e6)] = 17.0
    least_cycles_per_dram_packet: Annotated[float, Field(ge=5, le=1e6)] = 16.0
