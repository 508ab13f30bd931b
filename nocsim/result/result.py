"""The result of a simulation: where every cycle and every byte went."""

from __future__ import annotations

from typing import Literal

from cosa.analytical.loads import BoundBy
from cosa.analytical.traffic import Node
from cosa.common.files import FileModel, Model
from cosa.model.layer import Tensor
from cosa.model.schedule import Made
from nocsim.machine.ledger import FlowKind
from nocsim.machine.limits import Ending
from nocsim.machine.waits import Cause, Resource


class Cycles(Model):
    """Cycles of the whole run, and what other models say.

    `analytical`: the larger of compute and the words that the machine moves at each level over stated bandwidths;
    `analytical_timeloop`: the same by Timeloop's counts. `bound`: what no run of this machine can be below, and the
    resource that says so (`cosa.analytical.loads`).
    """

    total: int
    compute_only: int
    analytical: int
    analytical_timeloop: int
    bound: int
    bound_by: BoundBy
    steps: int
    cycles_per_step: int
    pipeline_latency_per_step: int


class PeCycles(Model):
    """Where the cycles of one PE went; they add up to the total.

    A wait is booked on what was missing at that moment, in the order inputs, weights, room for outputs, partial sums.
    `drain`: waiting for room for the next outputs, for the send engine, or for the last outputs to leave.
    `idle`: not in use, or finished; in a partial result also what was going on when it ended.
    `waiting`: the four figures of waits and drain by the resource that kept the PE waiting (`nocsim.machine.waits`);
    they add up to these, and nothing is listed that is 0.
    """

    pe: int
    column: int
    row: int
    used: bool
    computing: int
    waiting_inputs: int
    waiting_weights: int
    waiting_partial_sums: int
    drain: int
    idle: int
    waiting: dict[Cause, dict[Resource, int]]


class Extrapolation(Model):
    """How much of a long schedule was simulated, and how sure the rest is (`nocsim.machine.sampling`).

    Attributes
    ----------
    periods: iterations of the outer loops that the schedule has; a period has `steps_per_period` steps
    kinds: how many kinds of periods there are
    simulated_periods: of them `measured_periods` stand for all others; the rest brings the machine into its state
    simulated_steps, simulated_cycles: what was really simulated
    extrapolated_share: share of the total cycles that was not simulated
    standard_error_share: standard error of the total, from the spread within each kind, over the total
    shift_share: change of the total when all windows settled twice as long before they were measured, over the total
    shift_error_share: standard error of that change, over the total
    margin_share: five times all three together, no less than 0.0025: an estimate of what the total may be off by, not
        a bound. All four are null in a partial result
    runs: simulations, the last of which counts; each measures more than the one before
    """

    periods: int
    steps_per_period: int
    kinds: int
    simulated_periods: int
    measured_periods: int
    simulated_steps: int
    simulated_cycles: int
    extrapolated_share: float
    standard_error_share: float | None
    shift_share: float | None
    shift_error_share: float | None
    margin_share: float | None
    runs: int


class FlowWords(Model):
    """Words of a tensor between two kinds of node. A multicast word is sent once and received by each of its PEs."""

    tensor: Tensor
    source: Node
    destination: Node
    kind: FlowKind
    transfers: int
    sent_words: int
    received_words: int


class Load(Model):
    """Packets, flits (headers included) and payload bytes."""

    packets: int = 0
    flits: int = 0
    bytes: int = 0


class NodeBytes(Model):
    """Payload bytes that a node sent and received, by tensor (a multicast is sent once)."""

    node: str
    sent: dict[Tensor, int]
    received: dict[Tensor, int]


class LinkLoad(Model):
    """One directed link between routers, or a port: injection from a node into its router, ejection to the node."""

    link: str
    kind: Literal["mesh", "injection", "ejection"]
    flits: int
    busy_share: float
    tensors: dict[Tensor, Load]


class DramClocks(Model):
    """DRAM clocks of a channel's data bus over the whole run, by what they went to (see `dram.losses`); all of them."""

    data: int
    row: int
    activation: int
    turnaround: int
    bank_group: int
    refresh: int
    command_bus: int
    idle: int
    in_progress: int


class DramEnergy(Model):
    """Energy of a channel in pJ, from data sheet currents, command counts and bank states (see `dram.stats`)."""

    background: float
    activate: float
    burst: float
    refresh: float
    total: float


class DramChannel(Model):
    """One DRAM channel. Bandwidth in bytes of whole bursts over the whole run; 1 GB = 1e9 bytes.

    `clocks` says where time was lost; `energy_pj` is null for a device without currents.
    """

    channel: int
    reads: int
    writes: int
    row_hits: int
    row_misses: int
    row_conflicts: int
    row_hit_rate: float
    refreshes: int
    bytes: int
    bytes_per_core_cycle: float
    bandwidth_gbps: float
    peak_bandwidth_gbps: float
    busy_share: float
    clocks: DramClocks
    energy_pj: DramEnergy | None


class Dram(Model):
    """The DRAM as it was set up, and its channels (none with an ideal memory).

    `advice` is set where the address mapping makes a plain stream slower than random access.
    """

    device: str
    policy: str
    mapping: str
    clocks_per_core_cycle: str
    advice: str | None
    channels: tuple[DramChannel, ...]


class RunTiming(Model):
    """Wall-clock seconds; not part of comparisons. Kernels are compiled once a machine, then loaded from a cache."""

    load_kernels_seconds: float
    simulate_seconds: float
    total_seconds: float


class Result(FileModel):
    """Everything a run tells. `simulated_over_analytical` (in cycles) is what an analytical model does not see.

    `made`: who made the schedule, for what, and what is proven of it. `macs` are those of the layer, and so is
    `mac_utilisation`; `padding_macs` are computed on top of them.

    A run that was ended early (`ended`) is partial: its cycles go up to that moment, its words are what moved by then,
    and it has no ratios to other models. `method` says whether all of the schedule was simulated; if not,
    `extrapolation` says how much.
    """

    kind: Literal["simulation_result"] = "simulation_result"
    schema_version: Literal[1] = 1
    version: str
    layer: str
    architecture: str
    architecture_hash: str
    schedule_hash: str
    made: Made
    mesh: str
    ideal_network: bool
    ideal_memory: bool
    ended: Ending
    cycles: Cycles
    milliseconds: float
    simulated_over_analytical: float | None
    simulated_over_bound: float | None
    macs: int
    padding_macs: int
    method: Literal["exact", "extrapolated"]
    extrapolation: Extrapolation | None
    mac_utilisation: float
    pes: tuple[PeCycles, ...]
    flows: tuple[FlowWords, ...]
    tensors: dict[Tensor, Load]
    nodes: tuple[NodeBytes, ...]
    links: tuple[LinkLoad, ...]
    dram: Dram
    timing: RunTiming | None = None
