"""How a schedule is run: options of `nocsim.simulate` and of `nocsim run`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cosa.common.options import Options, option
from cosa.model.arch import PlacementOrder


class RunOptions(Options):
    """How a schedule is run on the simulated machine."""

    placement: PlacementOrder | None = option(
        None, "How spatial loops lie on the mesh, instead of machine.placement.", metavar="ORDER"
    )
    ideal_network: bool = option(False, "No mesh: zero latency, no limit.")
    ideal_memory: bool = option(False, "No DRAM: zero latency, no limit.")
    max_cycles: Annotated[int, Field(gt=0)] | None = option(None, "End the run at this cycle.")
    time_limit_seconds: Annotated[float, Field(gt=0)] | None = option(
        None, "End the run after this time (without: never); with layers, the mapper.", unit="seconds"
    )
    exact: bool = option(False, "Simulate every step, also of a schedule with very many of them.")
