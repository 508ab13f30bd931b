"""Routes, loads and the bound of the machine, against the simulator that may not be imported there."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import ceil

import pytest

import cosa
from cosa.analytical.loads import DramData, bound, dram_accesses, flits, loads
from cosa.analytical.routes import endpoint, multicast_links, reduction_order, xy_links
from cosa.analytical.traffic import Traffic
from cosa.model.arch import Architecture, load_architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Loop, Provenance, Schedule, ScheduleLevel
from nocsim import simulate
from nocsim.machine.accelerator import Accelerator
from nocsim.machine.dataflow import ReductionTree
from nocsim.machine.dram_setup import clocks_per_core_cycle, dram_config
from nocsim.machine.network import Packetiser
from nocsim.mesh.routing import multicast_tree, unicast_route
from nocsim.mesh.topology import LinkKind, Topology
from tests.nocsim.nests import architecture, random_schedule


def dram_data(schedule: Schedule) -> DramData:
    config = dram_config(schedule.architecture)
    cycles = config.timing.burst_clocks / clocks_per_core_cycle(schedule.architecture, config)
    return DramData(config.request_bytes, cycles, schedule.architecture.require_dram().channels)


def between_routers(mesh: Topology, links: object) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    found = [mesh.link(number) for number in links]  # type: ignore[attr-defined]
    return {(mesh.position(x.source), mesh.position(x.target)) for x in found if x.kind == LinkKind.ROUTER}


def test_routes_are_those_of_the_simulator() -> None:
    mesh = Topology(columns=4, rows=3)
    for source in range(mesh.n_routers):
        places = [mesh.position(router) for router in range(mesh.n_routers)]
        for destination in range(mesh.n_routers):
            ours = xy_links(places[source], places[destination])
            assert set(ours) == between_routers(mesh, unicast_route(mesh, source, destination))
        group = [(source * 5 + step) % mesh.n_routers for step in (1, 4, 6, 11)]
        ours_tree = multicast_links(places[source], [places[router] for router in group])
        assert ours_tree == between_routers(mesh, multicast_tree(mesh, source, group))


def test_reductions_are_those_of_the_simulator() -> None:
    for group in ([5], [0, 1, 2], [1, 5, 9], [0, 3, 4, 7, 9], [2, 6, 7, 8, 15]):
        tree = ReductionTree.of(group, 4)
        pairs, root = reduction_order(group, 4)
        assert (dict(pairs), root) == (tree.successor, tree.root)


def test_reductions_go_along_rows_and_then_down() -> None:
    """PEs 0, 3 / 4, 7 / 9 of four columns: written out, since the simulator builds its trees from the same pairs."""
    assert reduction_order([9, 0, 7, 3, 4], 4) == ([(0, 3), (4, 7), (3, 7), (7, 9)], 9)
    tree = ReductionTree.of([9, 0, 7, 3, 4], 4)
    assert tree.predecessors == {0: (), 3: (0,), 4: (), 7: (3, 4), 9: (7,)}


@pytest.mark.parametrize("name", ["simba_4x4", "cosa2021", "simba_8x8"])
def test_flits_are_those_of_one_message(name: str) -> None:
    noc = load_architecture(name).require_noc()
    cut = Packetiser(noc)
    for n_bytes in range(1, 300):
        assert flits(noc, n_bytes) == cut.flits(n_bytes)


def test_every_port_and_link_carries_what_the_simulator_carries() -> None:
    """With one port a node and whole transfers nothing is left to choose, so loads are equal, not only bounds."""
    for seed in range(30):
        refetch = ("physical", "published")[seed % 2]
        schedule = random_schedule(seed, machine={"chunk_packets": None, "weights_refetch": refetch})
        accelerator = Accelerator(schedule, ideal_memory=True)
        accelerator.run()
        noc, mesh = schedule.architecture.require_noc(), accelerator.topology
        injected: Counter[object] = Counter()
        ejected: Counter[object] = Counter()
        links: Counter[object] = Counter()
        uncut: Counter[object] = Counter()
        written = {endpoint(noc, port) for port in noc.dram_ports}
        for (_, src, dsts), load in accelerator.network.loads.items():
            places = [mesh.position(mesh.attachment(e)[0]) for e in (src, *dsts)]
            injected[places[0], src >= mesh.n_routers] += load.flits
            for place, dst in zip(places[1:], dsts, strict=True):
                ejected[place, dst >= mesh.n_routers] += load.flits
            for link in multicast_links(places[0], places[1:]):
                links[link] += load.flits
                uncut[link] += 0 if dsts[0] >= mesh.n_routers else load.flits
        ours = loads(Traffic(schedule.layer, schedule.architecture, schedule.nest))
        assert {(p[0][:2], p[0] in written): f for p, f in ours.injected_flits.items()} == dict(injected), seed
        assert ours.link_flits.keys() == links.keys()
        assert all(uncut[link] <= number <= links[link] for link, number in ours.link_flits.items()), seed
        # The DRAM port takes writes in pieces that fit its buffer: more packets than one transfer would need.
        for ports, number in ours.ejected_flits.items():
            theirs = ejected[ports[0][:2], ports[0] in written]
            assert number <= theirs if ports[0] in written else number == theirs, seed


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_no_run_is_below_the_bound(first: int) -> None:
    for seed in range(first, first + 10):
        schedule = random_schedule(seed, machine={"weights_refetch": ("physical", "published")[seed % 2]})
        traffic = Traffic(schedule.layer, schedule.architecture, schedule.nest)
        found = bound(traffic, dram_data(schedule))
        assert found.cycles <= simulate(schedule).cycles.total, (seed, found)


@pytest.fixture(scope="module")
def small() -> Schedule:
    return cosa.schedule(Layer(R=3, S=3, P=14, Q=14, C=16, K=32, N=1), objective="cosa")


@pytest.mark.parametrize("name", ["simba_4x4", "simba_4x4_wide", "cosa2021"])
def test_no_run_of_a_packaged_machine_is_below_the_bound(small: Schedule, name: str) -> None:
    moved = small.with_architecture(load_architecture(name))
    found = bound(Traffic(moved.layer, moved.architecture, moved.nest), dram_data(moved))
    total = simulate(moved).cycles.total
    assert found.cycles <= total
    assert found.cycles > total / 10
    assert found.bound_by in ("compute", "port", "link", "memory", "dram")


def test_several_ports_share_and_leave_links_open(schedule: Schedule) -> None:
    one, wide = (
        Traffic(moved.layer, moved.architecture, moved.nest)
        for moved in (schedule.with_architecture(load_architecture(name)) for name in ("simba_4x4", "simba_4x4_wide"))
    )
    assert bound(wide).port_cycles < bound(one).port_cycles
    assert bound(one).dram_cycles is None
    assert dram_accesses(one, 64) == dram_accesses(wide, 64) > 0


def by_hand() -> Schedule:
    """16 weights to two PEs, 8 each, past the global buffer; 4 inputs into it and on to both; 4 outputs back and on."""
    arch = architecture([["weights", "inputs", "outputs"]], mesh="2x2")
    data = arch.model_dump(mode="json")
    data["levels"][1] |= {"read_bandwidth_words_per_cycle": 0.5, "write_bandwidth_words_per_cycle": 0.25}
    data["pe"]["pipeline_latency_cycles"] = 7
    arch = Architecture.from_data(data)
    loops = ((), (Loop(dim="K", bound=2, kind="spatial", axis="x"),), (Loop(dim="K", bound=2), Loop(dim="C", bound=4)))
    nest = tuple(
        ScheduleLevel(level=entry.name, keeps=entry.keeps, loops=each)
        for entry, each in zip(arch.levels[::-1], loops, strict=True)
    )
    layer = Layer(name="hand", R=1, S=1, P=1, Q=1, C=4, K=4, N=1)
    return Schedule.make(layer, arch, nest, Provenance(mapper="hand", version="0"))


def test_each_resource_by_hand() -> None:
    schedule = by_hand()
    traffic = Traffic(schedule.layer, schedule.architecture, schedule.nest)
    assert dram_accesses(traffic, 64) == 2 + 1 + 1
    assert dram_accesses(traffic, 4) == 2 * 2 + 1 + 1
    found = bound(traffic, DramData(4, Fraction(5, 2), channels=2))
    # The buffer sends 4 inputs, one multicast, and 4 outputs; it takes as many.
    assert found.memory_cycles == 8 / 0.25
    assert found.dram_cycles == ceil(3 * 2.5)
    assert found.compute_cycles == 8 + 7
    slow_reads = schedule.architecture.model_dump(mode="json")
    slow_reads["levels"][1] |= {"read_bandwidth_words_per_cycle": 0.1}
    moved = Traffic(schedule.layer, Architecture.from_data(slow_reads), schedule.nest)
    assert bound(moved).memory_cycles == 8 / 0.1
    assert simulate(schedule).cycles.total >= found.cycles
