"""Puts one accelerator together for a schedule, and runs it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import simpy
from simpy.core import EmptySchedule

from cosa.analytical.routes import endpoint
from cosa.analytical.traffic import Node, Residency, Traffic, bytes_of
from cosa.common.errors import InputError
from cosa.model.layer import Tensor
from cosa.model.noc import NodePort
from cosa.model.schedule import Schedule
from cosa.model.validity import require_valid
from dram.system import DramSystem
from nocsim.errors import SimulationError
from nocsim.machine.conductor import Conductor
from nocsim.machine.dataflow import ReductionTree, StepTable
from nocsim.machine.dram_port import READ, WRITE, AddressLayout, DramPort
from nocsim.machine.dram_setup import clocks_per_core_cycle, dram_config
from nocsim.machine.dram_side import DramSide
from nocsim.machine.feed import Feed, Source
from nocsim.machine.global_buffer import GlobalBuffer
from nocsim.machine.holder import Holder, Slot
from nocsim.machine.ledger import FlowKey, Ledger
from nocsim.machine.limits import Ending, Limits, Progress
from nocsim.machine.memory import DramMemory, IdealMemory, Memory
from nocsim.machine.network import IdealNetwork, MachineNetwork, MeshNetwork
from nocsim.machine.output_home import DirectOutputs, OutputHome, OutputWidths
from nocsim.machine.output_memory import BufferedOutputs
from nocsim.machine.pe import ProcessingElement
from nocsim.machine.sampling import SamplingPlan
from nocsim.mesh.mesh import Mesh
from nocsim.mesh.routing import hops
from nocsim.mesh.topology import Port, Topology

_SIDES = {"local": Port.LOCAL, "north": Port.NORTH, "east": Port.EAST, "south": Port.SOUTH, "west": Port.WEST}

_EVENTS_BETWEEN_LOOKS = 4096
"""SimPy events between two looks at the clock on the wall."""

OPERANDS: tuple[Tensor, ...] = ("weights", "inputs")


@dataclass(frozen=True)
class Parts:
    """The classes an accelerator is made of. Replace one to change the machine, for example a PE with a slower one."""

    pe: type[ProcessingElement] = ProcessingElement
    global_buffer: type[GlobalBuffer] = GlobalBuffer
    dram_port: type[DramPort] = DramPort


class Accelerator:
    """One accelerator for one schedule.

    Every PE in use, the global buffer and every DRAM port are SimPy processes that wait for each other's counts and
    for messages; mesh and DRAM are islands behind the conductor.

    Parameters
    ----------
    schedule: what runs, with the architecture it runs on.
    ideal_network, ideal_memory: unlimited bandwidth and zero latency instead of the mesh or the DRAM.
    parts: the classes to build from.
    plan: the periods to simulate of a long schedule; None simulates all of it.

    Raises
    ------
    InfeasibleError: the schedule does not fit the architecture.
    InputError: spatial loops outside the mesh, ports without a place of their own, or a wrong DRAM block.
    """

    def __init__(
        self,
        schedule: Schedule,
        *,
        ideal_network: bool = False,
        ideal_memory: bool = False,
        parts: Parts | None = None,
        plan: SamplingPlan | None = None,
    ) -> None:
        self.plan = plan
        require_valid(schedule, "simulation")
        parts = parts or Parts()
        architecture = schedule.architecture
        self.schedule, self.architecture = schedule, architecture
        self.traffic = Traffic(schedule.padded_layer, architecture, schedule.nest)
        noc = architecture.require_noc()
        self.topology = Topology(noc.router_columns, noc.router_rows)
        self.dram_config = dram_config(architecture)
        self.clocks_per_core_cycle: Fraction = clocks_per_core_cycle(architecture, self.dram_config)
        dram_endpoints = [self._endpoint(port) for port in noc.dram_ports]
        # With the mesh directly below the DRAM there is no memory to sit there.
        on_chip = range(architecture.mesh_level, len(architecture.levels) - 1)
        buffer_endpoints = [self._endpoint(port) for port in noc.global_buffer_ports if on_chip]
        self._check_places(dram_endpoints, buffer_endpoints)

        self.env = simpy.Environment(initial_time=0)
        self.conductor = Conductor(self.env)
        self.ledger = Ledger()
        self.ended: Ending = "finished"
        self._nearest_known: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, int]] = {}
        self.mesh: Mesh | None = None
        self.memory: Memory
        self.network: MachineNetwork
        self.channels: list[DramSystem] = []
        mesh_network = None
        if ideal_network:
            self.network = IdealNetwork(self.env, noc)
        else:
            self.mesh = Mesh(
                noc.router_columns,
                noc.router_rows,
                fifo_flits=noc.fifo_flits,
                reservation_flits=noc.multicast_reservation_flits,
            )
            self.network = mesh_network = MeshNetwork(self.env, self.mesh, noc, self.conductor.wake)
        dram_memory = None
        if ideal_memory:
            self.memory = IdealMemory(self.env)
        else:
            self.channels = [
                DramSystem(self.dram_config, self.clocks_per_core_cycle)
                for _ in range(architecture.require_dram().channels)
            ]
            self.memory = dram_memory = DramMemory(self.env, self.channels, self.conductor.wake)
        self.conductor.conduct(self.mesh, mesh_network, dram_memory)

        layout = self._layout()
        self.dram_ports = [
            parts.dram_port(self.env, endpoint, self.network, self.memory, layout, architecture.machine)
            for endpoint in dram_endpoints
        ]
        chunked = architecture.machine.chunk_packets is not None
        self.dram = DramSide(self.env, self.dram_ports, layout, self.network, self._nearest, chunked)
        self.global_buffer = parts.global_buffer(
            self.env,
            tuple(buffer_endpoints),
            self.network,
            self._nearest,
            self._hops,
            architecture.machine.chunk_packets,
        )
        for level in on_chip:
            kept = [t for t in OPERANDS if level in (x.store for x in self.traffic.on_chip[t])]
            slots = {tensor: self._slot(level) for tensor in kept}
            self.global_buffer.add_memory(level, self.traffic.node(level), architecture.levels[level], slots)
        self.pes = self._pes(parts.pe)
        self.home = self._output_home()

    # ---- building

    def _endpoint(self, port: NodePort) -> int:
        column, row, side = endpoint(self.architecture.require_noc(), port)
        return self.topology.endpoint_at(self.topology.router_at(column, row), _SIDES[side])

    def _check_places(self, dram_endpoints: list[int], buffer_endpoints: list[int]) -> None:
        everything = [*dram_endpoints, *buffer_endpoints]
        pes = set(self.traffic.placement.used)
        if len(set(everything)) != len(everything) or pes & set(everything):
            raise InputError(
                "a port of the global buffer or the DRAM sits where another port or a PE in use is",
                source=self.architecture.name,
                path="noc.global_buffer_ports, noc.dram_ports",
                value=[self.topology.endpoint_name(endpoint) for endpoint in everything],
                allowed="distinct places, local ports only on routers without a PE (see extra_rows)",
            )
        if self.architecture.require_dram().channels % len(dram_endpoints):
            raise InputError(
                "every DRAM port needs the same number of channels",
                source=self.architecture.name,
                path="dram.channels",
                value=self.architecture.require_dram().channels,
                allowed=f"a multiple of the {len(dram_endpoints)} noc.dram_ports",
            )

    def _hops(self, src: int, dst: int) -> int:
        return hops(self.topology, src, dst)

    def _nearest(self, sources: tuple[int, ...], dsts: tuple[int, ...]) -> tuple[int, int]:
        # Asked for every transfer, but always about the same few places.
        if (sources, dsts) not in self._nearest_known:
            pairs = ((s, d) for s in sources for d in dsts)
            self._nearest_known[sources, dsts] = min(pairs, key=lambda pair: (self._hops(*pair), pair))
        return self._nearest_known[sources, dsts]

    def _slot(self, level: int, begins: bool = False) -> Slot:
        return Slot.of(self.env, self._buffers(level), begins)

    def _buffers(self, store: int) -> int:
        """Tile sets of a level; MACs that take words directly (-1) have their own registers and nothing beside them."""
        return self.architecture.levels[store].buffers if store >= 0 else 1

    def _layout(self) -> AddressLayout:
        config = self.dram_config
        o = config.organization
        row_bytes = o.columns * o.bus_width_bits // 8 * o.banks * o.ranks
        layout = AddressLayout(
            config.request_bytes, row_bytes, config.capacity_bytes, self.architecture.require_dram().channels
        )
        for tensor in ("weights", "inputs", "outputs"):
            residency = self.traffic.outside_dram(tensor)
            groups = 1 if self.traffic.on_chip[tensor] else len(self.traffic.placement.groups(residency.tile))
            # Outputs are written at either width into the same place, so the region has room for partial sums.
            bits = self.traffic.word_bits(tensor, finished=False)
            layout.reserve(tensor, residency.distinct_tiles * groups, bytes_of(residency.tile.words, bits))
        return layout

    def _pes(self, kind: type[ProcessingElement]) -> dict[int, ProcessingElement]:
        traffic, architecture = self.traffic, self.architecture
        outputs = traffic.pe["outputs"]
        groups = traffic.placement.groups(outputs.tile)
        trees = [ReductionTree.of(pes, traffic.placement.columns, architecture.machine.reduction) for _, pes in groups]
        tree_of = {pe: tree for tree, (_, pes) in zip(trees, groups, strict=True) for pe in pes}
        steps = StepTable(traffic)
        begins = architecture.machine.compute_starts == "first_word"
        self.roots = [tree.root for tree in trees]
        return {
            number: kind(
                self.env,
                number,
                self.topology.endpoint_at(number, Port.LOCAL),
                self.network,
                {tensor: self._slot(traffic.pe[tensor].store, begins) for tensor in OPERANDS},
                self._buffers(outputs.store),
                outputs,
                steps,
                tree_of[number],
                architecture.pe,
                architecture.machine,
                self.ledger,
                self.plan,
                next(iter(traffic.on_chip["outputs"]), None),
            )
            for number in traffic.placement.used
        }

    def _output_home(self) -> OutputHome:
        traffic = self.traffic
        widths = OutputWidths(traffic.word_bits("outputs"), traffic.word_bits("outputs", finished=False))
        pe, on_chip = traffic.pe["outputs"], traffic.on_chip["outputs"]
        if not on_chip:
            return DirectOutputs(self.env, pe, self.dram, widths, self.ledger, self.plan)
        sources: list[tuple[Node, Residency]] = [("pe", pe), *((traffic.node(x.store), x) for x in on_chip)]
        home: BufferedOutputs | None = None
        for further_in, own in reversed(list(zip(sources, on_chip, strict=False))):
            memory = self.global_buffer.memories[own.store]
            home = BufferedOutputs(self.env, memory, further_in, own, self.dram, widths, self.ledger, home, self.plan)
        assert home is not None
        return home

    def _feeds(self) -> tuple[list[Feed], list[Feed]]:
        """The feeds of the DRAM and those of the memories on the chip."""
        from_dram: list[Feed] = []
        from_buffer: list[Feed] = []
        for tensor in OPERANDS:
            residency = self.traffic.pe[tensor]
            groups: list[tuple[Holder, ...]] = [
                tuple(self.pes[pe] for pe in pes) for _, pes in self.traffic.placement.groups(residency.tile)
            ]
            node: Node = "pe"
            # From the inside out, each is fed by the next memory that keeps the tensor.
            for own in self.traffic.on_chip[tensor]:
                memory = self.global_buffer.memories[own.store]
                upstream = own, memory.slots[tensor]
                from_buffer.append(self._feed(tensor, residency, groups, memory, (memory.name, node), upstream))
                residency, groups, node = own, [(memory,)], memory.name
            from_dram.append(self._feed(tensor, residency, groups, self.dram, ("dram", node)))
        return from_dram, from_buffer

    def _feed(
        self,
        tensor: Tensor,
        residency: Residency,
        groups: list[tuple[Holder, ...]],
        source: Source,
        nodes: tuple[Node, Node],
        upstream: tuple[Residency, Slot] | None = None,
    ) -> Feed:
        key: FlowKey = (tensor, *nodes, "fill")
        bits = self.traffic.word_bits(tensor)
        return Feed(tensor, residency, groups, source, bits, self.ledger, key, upstream, self.plan)

    # ---- running

    def load_kernels(self) -> float:
        """Compile the islands' kernels, or load them from the cache, before the clock runs; returns the seconds."""
        started = time.perf_counter()
        if self.mesh is not None:
            self.mesh.run(self.mesh.now)
        if self.channels:
            scratch = DramSystem(self.dram_config, self.clocks_per_core_cycle)
            for op in (READ, WRITE):
                scratch.submit(0, op, 0, op)
            while scratch.pending:
                scratch.advance(scratch.earliest_visible_cycle() or 0)
        return time.perf_counter() - started

    def run(self, limits: Limits | None = None, progress: Progress | None = None) -> float:
        """Simulate to the end or a limit; returns the seconds it took. `self.env.now` is then the total in cycles.

        `self.ended` says how it ended.

        Raises
        ------
        SimulationError: nothing can go on although work is left.
        """
        started = time.perf_counter()
        env = self.env
        from_dram, from_buffer = self._feeds()
        feeds = [*self.dram.start(from_dram), *self.global_buffer.start(from_buffer)]
        roots = [self.pes[number] for number in self.roots]
        self.home.start(roots)
        partial_bits = self.traffic.word_bits("outputs", finished=False)
        processes: list[Any] = [x for pe in self.pes.values() for x in pe.start(self.pes, self.home, partial_bits)]
        everything = env.all_of([*processes, *feeds, self.home.finished()])
        limits = limits or Limits()
        try:
            self.ended = self._watch(everything, limits, progress)
        except KeyboardInterrupt:
            if not limits.keep_interrupted:
                raise
            self.ended = "interrupted"
        except EmptySchedule:
            raise SimulationError(self._stuck()) from None
        return time.perf_counter() - started

    def _watch(self, everything: Any, limits: Limits, progress: Progress | None) -> Ending:
        """Step from event to event until all is done or a limit is reached."""
        env = self.env
        last_cycle: float = inf
        if limits.max_cycles is not None:
            last_cycle = self.conductor.last_cycle = limits.max_cycles
        deadline = inf if limits.time_limit_seconds is None else time.monotonic() + limits.time_limit_seconds
        events = 0
        while not everything.processed:
            if env.peek() > last_cycle and (env.peek() < inf or env.now == last_cycle):
                return "max_cycles"
            env.step()
            events += 1
            if not events % _EVENTS_BETWEEN_LOOKS:
                if progress is not None:
                    progress(self.simulated_share, env.now)
                if time.monotonic() > deadline:
                    return "time_limit"
        return "finished"

    @property
    def end_cycle(self) -> int:
        """The total; of a run that was ended early the cycle up to which anything was simulated."""
        if self.ended == "max_cycles":
            return self.conductor.last_cycle
        cycles = [int(self.env.now)]
        if self.ended != "finished":
            # The islands run up to the next thing that anybody can see, ahead of SimPy.
            cycles += [self.mesh.now] if self.mesh is not None else []
            cycles += [self.memory.cycle] if isinstance(self.memory, DramMemory) else []
        return max(1, *cycles)

    @property
    def computed_share(self) -> float:
        """Share of all steps of all PEs that are computed."""
        each = self.traffic.steps * next(iter(self.pes.values())).step_cycles()
        return sum(pe.computing_cycles for pe in self.pes.values()) / (each * len(self.pes) or 1)

    @property
    def simulated_share(self) -> float:
        """Share of the steps to simulate that are computed: with a plan whole periods, whatever they stand for."""
        if self.plan is None:
            return self.computed_share
        return sum(len(pe.period_starts) for pe in self.pes.values()) / (len(self.pes) * (len(self.plan.periods) + 1))

    def _stuck(self) -> str:
        waiting = [pe.state for pe in self.pes.values()]
        mesh = self.mesh.describe_stall() if self.mesh is not None and not self.mesh.idle else "the mesh is empty"
        return f"no process can go on at cycle {self.env.now}: {'; '.join(waiting[:4])}; {mesh}"
