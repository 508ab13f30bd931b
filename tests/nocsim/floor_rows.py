"""The rows of a run's floor, and its prediction, from its transfers one by one: what the closed form must equal."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from cosa.analytical.constants import Constants
from cosa.analytical.loads import Transfer, flits, transfers
from cosa.analytical.routes import endpoint, pe_endpoint
from cosa.analytical.traffic import Residency, Traffic, bytes_of
from cosa.model.layer import RELEVANT
from cosa.model.schedule import Schedule


class Rows:
    """The floors of a run by name, in cycles, and what it is predicted to take."""

    def __init__(self, schedule: Schedule, dram_bytes_per_cycle: float | None = None) -> None:
        traffic = Traffic(schedule.layer, schedule.architecture, schedule.nest)
        self.traffic, self.noc = traffic, schedule.architecture.require_noc()
        self.buffer = tuple(endpoint(self.noc, port) for port in self.noc.global_buffer_ports)
        self.dram = tuple(endpoint(self.noc, port) for port in self.noc.dram_ports)
        self.items = list(transfers(traffic))
        self.waits = schedule.architecture.machine.compute_starts == "whole_tile"
        latency = schedule.architecture.pe.pipeline_latency_cycles
        self.compute = traffic.compute_cycles + latency * traffic.steps
        self.rows = self._rows()
        if dram_bytes_per_cycle is not None:
            self.rows["DRAM bytes"] = self._dram_bytes() / dram_bytes_per_cycle

    @property
    def cycles(self) -> float:
        """The largest."""
        return max(self.rows.values())

    def predicted(self, constants: Constants) -> float:
        """The fitted sum, with `constants` and this floor."""
        at_buffer, at_dram = len(self.buffer), len(self.dram)
        to_pes = [item for item in self.items if item.kind == "fill" and item.destinations != (self.buffer,)]
        again = self._sum(item for item in self.items if item.kind == "reload" and item.destinations != (self.buffer,))
        outputs, weights = self.traffic.pe["outputs"], self.traffic.pe["weights"]
        from_dram = self._sum(item for item in to_pes if (item.tensor, item.source) == ("weights", self.dram)) / at_dram
        from_buffer = self._sum(item for item in to_pes if item.source == self.buffer) / at_buffer
        goes = moves(weights)
        buffered = self.traffic.on_chip["inputs"]
        late = goes >= 2 and bool(buffered) and moves(buffered[0]) >= 2 * goes
        _, sharing = self.traffic.placement.groups(outputs.tile)[0]
        far = self.traffic.on_chip["outputs"]
        parts = {
            "floor": self.cycles,
            "compute": self.compute,
            "dram_out": self._sum(item for item in self.items if item.source == self.dram) / at_dram,
            "dram_in": self._sum(item for item in self.items if item.destinations == (self.dram,)) / at_dram,
            "to_pes": (self._sum(to_pes) + again) / max(at_buffer, at_dram),
            "reloads": again,
            "reductions": outputs.visits * self._of(outputs, False) * (len(sharing) ** 0.65 if len(sharing) > 1 else 0),
            "shared": min(from_dram, from_buffer),
            "late": from_dram if late else 0.0,
            "first_in": self._filling()[1],
            "last_out": self._of(far[0]) / min(at_buffer, at_dram) if far else 0.0,
            "cycles_per_step": self.traffic.steps,
        }
        assert set(parts) == {name for name, value in Constants() if isinstance(value, float)} - {
            "dram_bytes_per_cycle"
        }
        return float(sum(getattr(constants, name) * part for name, part in parts.items()))

    @property
    def binding(self) -> str | None:
        """The name of the largest, if it is above all others by more than a hundredth."""
        largest, second = sorted(self.rows.values())[-2:][::-1]
        return max(self.rows, key=lambda name: self.rows[name]) if largest > 1.01 * second else None

    def _rows(self) -> dict[str, float]:
        at_buffer, at_dram = len(self.buffer), len(self.dram)
        to_pes = [item for item in self.items if item.kind == "fill" and item.destinations != (self.buffer,)]
        weights = [item for item in to_pes if item.tensor == "weights" and item.source == self.dram]
        start, first_in, prefetched = self._filling()
        outputs = self.traffic.pe["outputs"]
        last_of_pe = min(self._of(outputs, True), self._of(outputs, False))
        step = self.compute / self.traffic.steps
        last_out, before_writes = 0.0, step
        if self.traffic.on_chip["outputs"]:
            (far,) = self.traffic.on_chip["outputs"]
            last_out = self._of(far, True) / min(at_buffer, at_dram)
            before_writes = start + self.compute / moves(far) + last_of_pe
        tail, wait = last_of_pe + last_out, step if self.waits else 0.0
        of_last_weights = self.compute / moves(self.traffic.pe["weights"]) if self.waits else 0.0
        out = {ports: self._sum(item for item in self.items if item.source == ports) for ports in self._memories}
        into = {
            ports: self._sum(item for item in self.items if item.destinations == (ports,)) for ports in self._memories
        }
        return {
            "compute": start + self.compute + tail,
            "DRAM out": out[self.dram] / at_dram + wait + tail,
            "weights": self._sum(weights) / at_dram + of_last_weights + tail,
            "link": self._sum(to_pes) * self._link_share() + wait + tail,
            "buffer out": out[self.buffer] / at_buffer + first_in,
            "buffer out after the start": out[self.buffer] / at_buffer - prefetched + start,
            "buffer in": into[self.buffer] / at_buffer + last_out,
            "DRAM in": into[self.dram] / at_dram + before_writes,
            "PE in": self._into_a_pe() + tail,
        }

    @property
    def _memories(self) -> tuple[tuple[tuple[int, int, str], ...], ...]:
        return self.buffer, self.dram  # type: ignore[return-value]

    def _sum(self, items: Iterable[Transfer]) -> int:
        return sum(flits(self.noc, item.n_bytes) * item.count for item in items)

    def _of(self, residency: Residency, finished: bool = True) -> int:
        """Flits of one tile."""
        bits = self.traffic.word_bits(residency.tensor, finished=finished)
        return flits(self.noc, bytes_of(residency.tile.words, bits))

    def _groups(self, residency: Residency) -> int:
        return len(self.traffic.placement.groups(residency.tile))

    def _filling(self) -> tuple[float, float, float]:
        """Cycles before the last PE has its first tiles, those of the buffer's from DRAM, and what it has sent then."""
        architecture = self.traffic.architecture
        from_dram, into_buffer, sent, reached = 0.0, 0.0, 0.0, [0.0]
        for tensor in ("weights", "inputs"):
            pe = self.traffic.pe[tensor]  # type: ignore[index]
            of_each, groups = self._of(pe), self._groups(pe)
            if not self.traffic.on_chip[tensor]:  # type: ignore[index]
                from_dram += of_each * groups / len(self.dram)
                continue
            far = self._of(self.traffic.on_chip[tensor][0]) / len(self.dram)  # type: ignore[index]
            from_dram, into_buffer = from_dram + far, into_buffer + far
            reached.append(far + of_each * groups / len(self.buffer))
            sets = architecture.levels[pe.store].buffers if pe.store >= 0 else 1
            # All PEs but the last, which waits for its first, have one tile more than they have room for under way.
            sent += (sets * groups + groups - 1) * of_each
        if self.traffic.on_chip["outputs"]:
            sent += self._sum(item for item in self.items if item.kind == "reload" and item.source == self.buffer)
        start = max(from_dram, *reached) if self.waits else 0.0
        return start, into_buffer, sent / len(self.buffer)

    def _into_a_pe(self) -> float:
        """Flits into a PE that ends a chain of reductions: what it fetches, and one other's sums."""
        arrived = {}
        for number in range(self.noc.pes):
            here = (pe_endpoint(self.noc, number),)
            to_it = [item for item in self.items if here in item.destinations]
            reduced = [self._sum([item]) for item in to_it if item.kind == "reduction"]
            arrived[number] = self._sum(item for item in to_it if item.kind != "reduction") + min(reduced, default=0)
        return max(arrived.values())

    def _link_share(self) -> float:
        """Of the flits to PEs those that leave the memories' router along its row: all columns' but its own."""
        routers = {ports[0][:2] for ports in self._memories}
        if len(routers) > 1 or len(self.buffer) > 1 or len(self.dram) > 1:
            return 0.0
        columns = self.noc.pe_columns
        return 1 - 1 / columns if next(iter(routers))[0] == columns - 1 else 0.0

    def _dram_bytes(self) -> float:
        """Bytes of operands read, of finished outputs, and of partial sums there and back."""
        total = 0.0
        for tensor in ("weights", "inputs", "outputs"):
            residency = self.traffic.outside_dram(tensor)  # type: ignore[arg-type]
            groups = 1 if self.traffic.on_chip[tensor] else self._groups(residency)  # type: ignore[index]
            bits = self.traffic.word_bits(tensor)  # type: ignore[arg-type]
            if tensor != "outputs":
                total += groups * residency.fetched_words * bits / 8
                continue
            again = residency.visits - residency.distinct_tiles
            partial = self.traffic.word_bits("outputs", finished=False)
            total += groups * residency.tile.words * (residency.distinct_tiles * bits + 2 * again * partial) / 8
        return total


def moves(residency: Residency) -> int:
    """Iterations of the loops at and outside the innermost one that moves a tile."""
    moving = [
        at for at, loop in enumerate(residency.outer) if loop.dim in RELEVANT[residency.tensor] and loop.bound > 1
    ]
    last = len(residency.outer) if residency.store < 0 else max(moving, default=-1) + 1
    return prod(loop.bound for loop in residency.outer[:last])
