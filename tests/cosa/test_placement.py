"""Where the spatial loops at the mesh level lie, by hand, and what no order of them changes."""

from __future__ import annotations

from collections import Counter

import pytest

from cosa.analytical.loads import loads
from cosa.analytical.routes import reduction_order
from cosa.analytical.traffic import Traffic
from cosa.common.errors import InputError
from cosa.model.arch import Architecture
from cosa.model.layer import Layer
from cosa.model.schedule import Loop, Provenance, Schedule, ScheduleLevel
from tests.conftest import spatial
from tests.nocsim.nests import any_schedule, architecture

ORDERS = ("row_major", "column_major", "row_major_reversed", "column_major_reversed")


def placed(mesh: str, loops: tuple[Loop, ...], placement: str) -> dict[int, str]:
    """What each PE does: indices of K, C and P."""
    arch = architecture([["weights", "inputs", "outputs"]], mesh=mesh, machine={"placement": placement})
    bounds = {loop.dim: loop.bound for loop in loops}
    layer = Layer(R=1, S=1, P=bounds.get("P", 1), Q=1, C=bounds.get("C", 1), K=bounds.get("K", 1), N=1)
    nest = tuple(
        ScheduleLevel(level=level.name, keeps=level.keeps, loops=loops if level.fanout == "mesh" else ())
        for level in arch.levels[::-1]
    )
    schedule = Schedule.make(layer, arch, nest, Provenance(mapper="hand", version="1"))
    offsets = Traffic(schedule.layer, arch, schedule.nest).placement.offsets
    return {pe: " ".join(f"{dim}{at.get(dim, 0)}" for dim in bounds) for pe, at in offsets.items()}


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        # K3 down, C2 along: on a mesh of 4 columns and 3 rows
        ("as_scheduled", {0: "K0 C0", 1: "K0 C1", 4: "K1 C0", 5: "K1 C1", 8: "K2 C0", 9: "K2 C1"}),
        ("transposed", {0: "K0 C0", 1: "K1 C0", 2: "K2 C0", 4: "K0 C1", 5: "K1 C1", 6: "K2 C1"}),
        ("row_major", {0: "K0 C0", 1: "K0 C1", 2: "K1 C0", 3: "K1 C1", 4: "K2 C0", 5: "K2 C1"}),
        ("row_major_reversed", {0: "K0 C0", 1: "K1 C0", 2: "K2 C0", 3: "K0 C1", 4: "K1 C1", 5: "K2 C1"}),
        ("column_major", {0: "K0 C0", 4: "K0 C1", 8: "K1 C0", 1: "K1 C1", 5: "K2 C0", 9: "K2 C1"}),
        ("column_major_reversed", {0: "K0 C0", 4: "K1 C0", 8: "K2 C0", 1: "K0 C1", 5: "K1 C1", 9: "K2 C1"}),
    ],
)
def test_every_order_by_hand(placement: str, expected: dict[int, str]) -> None:
    assert placed("4x3", (spatial("K", 3, "y"), spatial("C", 2, "x")), placement) == expected


def test_numbered_loops_transposed_go_down_the_columns() -> None:
    assert placed("2x3", (spatial("P", 5, "row_major"),), "transposed") == {0: "P0", 2: "P1", 4: "P2", 1: "P3", 3: "P4"}


def test_transposed_loops_must_fit() -> None:
    with pytest.raises(InputError, match=r"machine.placement: .*need 1x4 PEs when they are transposed.*fits the 4x3"):
        placed("4x3", (spatial("K", 4, "x"),), "transposed")


def test_an_unknown_placement_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"placement: no such placement.*did you mean row_major"):
        architecture([["weights", "inputs", "outputs"]]).with_placement("row_mayor")


@pytest.mark.parametrize("placement", ORDERS)
def test_words_and_port_loads_do_not_depend_on_the_order(placement: str) -> None:
    different = 0
    for seed in range(40):
        schedule = any_schedule(seed)
        moved = Traffic(schedule.layer, schedule.architecture.with_placement(placement), schedule.nest)
        usual = Traffic(schedule.layer, schedule.architecture, schedule.nest)
        assert moved.flows == usual.flows
        assert len(moved.placement.used) == len(usual.placement.used)
        # The flits of the ports of global buffer and DRAM; those of PEs, and links, depend on who sits where.
        assert ports(moved) == ports(usual)
        different += loads(moved).link_flits != loads(usual).link_flits
    assert different


def ports(traffic: Traffic) -> Counter[object]:
    rows = traffic.architecture.require_noc().pe_rows
    found = loads(traffic)
    return Counter(
        {
            (direction, ends): flits
            for direction, by_ports in (("in", found.injected_flits), ("out", found.ejected_flits))
            for ends, flits in by_ports.items()
            if ends[0][1] >= rows
        }
    )


@pytest.mark.parametrize(
    ("group", "pairs"),
    [
        ([0, 1, 2, 3], [(0, 1), (2, 3), (1, 3)]),
        ([0, 1, 2, 3, 4], [(1, 2), (3, 4), (2, 4), (0, 4)]),
        ([5], []),
        # rows of 8: 0 1 / 8 9 10 / 17: in rows first, then their ends 1, 10, 17
        ([0, 1, 8, 9, 10, 17], [(0, 1), (9, 10), (8, 10), (10, 17), (1, 17)]),
    ],
)
def test_trees_by_hand(group: list[int], pairs: list[tuple[int, int]]) -> None:
    found, root = reduction_order(group, 8, "tree")
    assert (found, root) == (pairs, group[-1])
    assert len(reduction_order(group, 8)[0]) == len(pairs)


@pytest.mark.parametrize("number", [1, 2, 3, 7, 8, 16, 33])
def test_a_tree_is_as_deep_as_the_logarithm(number: int) -> None:
    pairs, root = reduction_order(range(number), 64, "tree")
    after = dict(pairs)
    depth = {root: 0}
    for pe in reversed(range(number - 1)):
        depth[pe] = depth[after[pe]] + 1
    assert len(depth) == number
    rounds = (number - 1).bit_length()
    assert max(depth.values()) <= rounds
    assert sum(pe == root for pe in after.values()) == rounds  # the root adds once a round


def test_the_switches_do_not_change_the_hash_of_a_machine_that_does_not_use_them(simba: Architecture) -> None:
    assert simba.content_hash == simba.with_placement("as_scheduled").content_hash
    assert simba.content_hash != simba.with_placement("row_major").content_hash
