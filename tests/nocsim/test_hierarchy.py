"""Any hierarchy: one to six levels, the mesh below any of them, any keeping and passing by, slow memories."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nocsim
from cosa.analytical.exact import exact
from cosa.analytical.traffic import Traffic
from cosa.common.errors import InputError
from cosa.model.arch import Architecture
from cosa.model.layer import TENSORS, Layer
from cosa.model.schedule import Provenance, Schedule, ScheduleLevel
from nocsim.errors import SimulationError
from nocsim.machine.accelerator import Accelerator, Parts
from nocsim.machine.global_buffer import GlobalBuffer
from tests.conftest import spatial, temporal
from tests.cosa.test_placement import ORDERS
from tests.nocsim.nests import BIG, any_schedule
from tests.nocsim.oracle import count_words
from tests.nocsim.test_accelerator import MACHINES, NOCS, check_conservation, check_cycles, run

seeds = st.integers(0, 10**6)
REFETCHES: tuple[dict[str, Any], ...] = ({}, {"weights_refetch": "published"})


def exact_words(schedule: Schedule, whole_pes: bool) -> dict[tuple[str, str, str, str], tuple[int, int]]:
    """Words of every hop that leaves a PE, named as the simulator names nodes."""
    traffic = Traffic(schedule.layer, schedule.architecture, schedule.nest)
    mesh = schedule.architecture.mesh_level
    found = {}
    for tensor, one in exact(schedule.layer, schedule.architecture, schedule.nest, whole_pes).items():
        store = traffic.pe[tensor].store
        for hop in one.hops:
            if min(hop.source, hop.destination) < store:
                continue  # inside a PE
            names = ["pe" if level < mesh else traffic.node(level) for level in (hop.source, hop.destination)]
            found[tensor, names[0], names[1], hop.kind] = hop.sent_words, hop.received_words
    return found


@settings(max_examples=80, deadline=None)
@given(seeds)
def test_words_at_every_boundary(seed: int) -> None:
    """Simulated = walk over every iteration = `exact` of whole PEs = closed form of `Traffic`."""
    schedule = any_schedule(seed, max_macs=400, machine=REFETCHES[seed // 3 % 2] | {"halo_reuse": seed % 3 != 0})
    accelerator = Accelerator(schedule, ideal_network=True, ideal_memory=True)
    accelerator.run()
    simulated = {key: (count.sent_words, count.received_words) for key, count in accelerator.ledger.flows.items()}
    flows = {(f.tensor, f.source, f.destination, f.kind): f for f in accelerator.traffic.flows}
    assert simulated == count_words(schedule)
    assert simulated == exact_words(schedule, whole_pes=True)
    assert simulated == {key: (flow.sent_words, flow.received_words) for key, flow in flows.items()}
    inside = [loop for level in schedule.innermost_first[: schedule.architecture.mesh_level] for loop in level.spatial]
    if all(loop.bound == 1 for loop in inside) and seed // 3 % 2 == 0:
        assert simulated == exact_words(schedule, whole_pes=False)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_any_machine_ends_above_its_bound_with_every_word_delivered(seed: int) -> None:
    """One-tile buffers, tiny FIFOs, one read at a time, slow memories: nothing hangs, nothing is lost."""
    schedule = any_schedule(
        seed,
        max_macs=400,
        noc=NOCS[seed % 3],
        machine=MACHINES[seed // 3 % 3]
        | {
            **REFETCHES[seed // 5 % 2],
            "halo_reuse": seed % 2 == 0,
            "compute_starts": ("whole_tile", "first_word")[seed // 9 % 2],
            "reduction": ("chain", "tree")[seed // 18 % 2],
            "placement": ("as_scheduled", *ORDERS)[seed // 36 % 5],
        },
        pe={"adder_words_per_cycle": (None, 1, 3)[seed % 3], "pipeline_latency_cycles": seed % 4},
    )
    accelerator, result = run(schedule)
    assert accelerator.mesh is not None and accelerator.mesh.idle
    check_conservation(accelerator, result)
    check_cycles(accelerator, result)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_with_infinite_resources_compute_and_pipeline_are_left(seed: int) -> None:
    schedule = any_schedule(seed, max_macs=400, pe={"pipeline_latency_cycles": seed % 4})
    data = schedule.architecture.model_dump(mode="json")
    for level in data["levels"]:
        level |= {"read_bandwidth_words_per_cycle": None, "write_bandwidth_words_per_cycle": None}
    free = schedule.with_architecture(Architecture.from_data(data))
    _, result = run(free, ideal_network=True, ideal_memory=True)
    assert result.cycles.total == result.cycles.compute_only + result.cycles.steps * (seed % 4)


# ---- by hand: a matrix product of 8 x 8 x 8 on a chain of memories


def chain(levels: list[dict[str, Any]], nest: dict[str, tuple[Any, ...]], mesh: str = "2x1") -> Schedule:
    """A nest by level name, on levels innermost first that keep everything if not said otherwise."""
    defaults = {"keeps": list(TENSORS), "capacity_words": BIG, "buffers": 1}
    architecture = Architecture.from_data(
        {
            "name": "chain",
            "levels": [defaults | level for level in levels[:-1]] + [defaults | levels[-1] | {"capacity_words": None}],
            "noc": {"mesh": mesh, "extra_rows": 1},
            "dram": {"device": "ddr4_2400_x8", "policy": "frfcfs", "mapping": "row:rank:bank:column:bankgroup"},
        }
    )
    layer = Layer(R=1, S=1, P=8, Q=1, C=8, K=8, N=1)
    entries = [
        ScheduleLevel(level=level.name, keeps=level.keeps, loops=nest.get(level.name, ()))
        for level in architecture.levels[::-1]
    ]
    return Schedule.make(layer, architecture, tuple(entries), Provenance(mapper="hand", version="1"))


def words(result: nocsim.Result) -> dict[tuple[str, str, str, str], int]:
    return {(f.tensor, f.source, f.destination, f.kind): f.sent_words for f in result.flows}


def test_a_dram_alone_over_single_macs() -> None:
    """Each of 512 / 2 iterations brings every PE a weight and an input, and takes a partial sum away and back."""
    schedule = chain(
        [{"name": "DRAM", "fanout": "mesh"}],
        {"DRAM": (temporal("P", 8), temporal("C", 8), temporal("K", 4), spatial("K", 2, "x"))},
    )
    result = nocsim.simulate(schedule)
    assert result.cycles.steps == result.cycles.compute_only == 256
    assert words(result) == {
        ("weights", "dram", "pe", "fill"): 512,  # K differs: one for each PE
        ("inputs", "dram", "pe", "fill"): 256,  # the same for both: one multicast
        ("outputs", "pe", "dram", "partial"): 512 - 64,
        ("outputs", "pe", "dram", "final"): 64,
        ("outputs", "dram", "pe", "reload"): 512 - 64,
    }
    assert not [node for node in result.nodes if node.node.startswith("global_buffer")]


def test_the_mesh_directly_below_the_dram() -> None:
    schedule = chain(
        [{"name": "L1"}, {"name": "DRAM", "fanout": "mesh"}],
        {
            "DRAM": (temporal("P", 4), spatial("C", 2, "x")),
            "L1": (temporal("P", 2), temporal("C", 4), temporal("K", 8)),
        },
    )
    assert words(nocsim.simulate(schedule)) == {
        ("weights", "dram", "pe", "fill"): 64,
        ("inputs", "dram", "pe", "fill"): 64,
        ("outputs", "pe", "pe", "reduction"): 64,
        ("outputs", "pe", "dram", "final"): 64,
    }


BUFFERED = {
    "DRAM": (temporal("P", 2),),
    "L3": (temporal("C", 2),),
    "L2": (temporal("K", 2), spatial("K", 2, "x")),
    "L1": (temporal("P", 4), temporal("C", 4), temporal("K", 2)),
}


def buffered(**bandwidths: float) -> Schedule:
    levels: list[dict[str, Any]] = [{"name": "L1"}, {"name": "L2", "fanout": "mesh"}, {"name": "L3"}, {"name": "DRAM"}]
    for name, value in bandwidths.items():
        level, port = name.split("_")
        levels[int(level[1]) - 1][f"{port}_bandwidth_words_per_cycle"] = value
    return chain(levels, BUFFERED)


def test_two_memories_between_dram_and_mesh() -> None:
    """Outputs of L2 leave for L3 twice for each tile of P: unfinished after the first half of C, and finished."""
    result = nocsim.simulate(buffered())
    assert words(result) == {
        ("weights", "dram", "chip:L3", "fill"): 64,
        ("weights", "chip:L3", "global_buffer", "fill"): 2 * 64,
        ("weights", "global_buffer", "pe", "fill"): 2 * 64,
        ("inputs", "dram", "chip:L3", "fill"): 64,
        ("inputs", "chip:L3", "global_buffer", "fill"): 64,
        ("inputs", "global_buffer", "pe", "fill"): 64,
        ("outputs", "pe", "global_buffer", "partial"): 64,
        ("outputs", "pe", "global_buffer", "final"): 64,
        ("outputs", "global_buffer", "pe", "reload"): 64,
        ("outputs", "global_buffer", "chip:L3", "final"): 64,
        ("outputs", "chip:L3", "dram", "final"): 64,
    }
    # Between the two memories nothing is on the mesh.
    assert sum(node.sent["weights"] for node in result.nodes) == 64 + 2 * 64


@pytest.mark.parametrize(
    ("port", "passing"),
    [
        ("L2_read", 3 * 64 + 64 + 64),  # weights twice, inputs, partial sums going back; finished outputs to L3
        ("L2_write", 3 * 64 + 2 * 64),
        ("L3_read", 3 * 64 + 64),
        ("L3_write", 2 * 64 + 64),
    ],
)
def test_a_memory_passes_its_words_at_its_bandwidth(port: str, passing: int) -> None:
    free = nocsim.simulate(buffered()).cycles
    slow, slower = (nocsim.simulate(buffered(**{port: rate})).cycles for rate in (0.05, 0.025))
    assert free.total < slow.total < slower.total
    assert (slow.bound, slow.bound_by) == (passing * 20, "memory")
    assert slower.total >= slower.bound == passing * 40
    # All else is small beside it, and hidden or added once.
    assert slower.total - slower.bound < free.total


def test_the_time_line_of_a_slow_memory() -> None:
    """One word in four cycles into the outer memory, all else immediate, one set everywhere.

    0..256 64 weights and ..384 32 inputs of the first half of P come in. What is passed on inward leaves its set free,
    so the inputs of the second half follow, 384..512, while the first half is computed (128 cycles). 512..640 the
    second half is computed, and the 32 outputs of the first come in; 640..768 those of the second.
    """
    result = nocsim.simulate(buffered(L3_write=0.25), ideal_network=True, ideal_memory=True)
    assert result.cycles.compute_only == 256
    assert result.cycles.total == result.cycles.bound == 768


class LosesWeights(GlobalBuffer):
    """Drops the second tile of weights."""

    sent = 0

    def send_to(self, stream: str, *args: Any) -> Any:
        self.sent += stream == "weights"
        if stream != "weights" or self.sent != 2:
            yield from super().send_to(stream, *args)


def test_a_machine_that_hangs_says_who_waits_for_what() -> None:
    accelerator = Accelerator(buffered(), parts=Parts(global_buffer=LosesWeights))
    with pytest.raises(
        SimulationError, match=r"no process can go on.*PE 1 \(.*waits for its weight tile number 1, 0 came"
    ):
        accelerator.run()


def test_spatial_loops_outside_the_mesh_are_refused() -> None:
    levels: list[dict[str, Any]] = [{"name": "L1", "fanout": "mesh"}, {"name": "DRAM", "fanout": 2}]
    loops = (temporal("P", 8), temporal("C", 8), temporal("K", 4))
    unused = chain(levels, {"DRAM": (), "L1": (*loops, temporal("K", 2))})
    assert nocsim.simulate(unused).mac_utilisation <= 0.25
    used = chain(levels, {"DRAM": (spatial("K", 2, "x"),), "L1": loops})
    with pytest.raises(InputError, match=r"nest\[0\].loops: spatial loops at DRAM, outside the mesh.*K2"):
        nocsim.simulate(used)
