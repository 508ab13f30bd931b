"""Replay of the published simulator's transactions: equal in every start and end, with and without DRAM."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, cast

import pytest

import cosa
from cosa.common.errors import InputError
from cosa.model.layer import Dim
from cosa.model.schedule import Loop, Provenance, Schedule, ScheduleLevel
from nocsim.commands.main import main
from nocsim.errors import SimulationError
from nocsim.published.generator import PublishedDataflow
from nocsim.published.reference import published_schedule
from nocsim.published.replay import replay_transactions
from nocsim.published.transactions import Transaction, read_transactions, time_lines, transaction_lines

DATA = Path(__file__).parents[1] / "data" / "endtoend"
SHARED = Path(__file__).parents[3] / "shared" / "reference" / "noc" / "endtoend"

TOTALS = {
    "example_56_56_64_64.no_dram": 145885,
    "example_56_56_64_64.dramsim2": 197567,
    "deepbench-09_OCR-mapB.no_dram": 91628,
    "deepbench-09_OCR-mapB.dramsim2": 113297,
}


@pytest.fixture
def unpacked(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"{request.param}.csv"
    path.write_bytes(gzip.decompress((DATA / f"{request.param}.transactions.csv.gz").read_bytes()))
    return path


@pytest.mark.parametrize("unpacked", TOTALS, indirect=True)
def test_every_start_and_end_is_equal(unpacked: Path) -> None:
    transactions = read_transactions(unpacked)
    variant = unpacked.stem.rsplit(".", 1)[1]
    replay = replay_transactions(transactions, 4, 5, "none" if variant == "no_dram" else variant)
    assert replay.total_cycles == TOTALS[unpacked.stem]
    assert time_lines(transactions, replay.times) == unpacked.read_text().splitlines()


@pytest.mark.skipif(not SHARED.is_dir(), reason="the full reference folder is not here")
@pytest.mark.parametrize("path", sorted(SHARED.glob("*.no_dram.transactions.csv")), ids=lambda path: path.name)
def test_all_runs_without_dram(path: Path) -> None:
    transactions = read_transactions(path)
    replay = replay_transactions(transactions, 4, 5)
    assert time_lines(transactions, replay.times) == path.read_text().splitlines()


@pytest.mark.parametrize("unpacked", ["example_56_56_64_64.no_dram"], indirect=True)
def test_command_line_and_published_layout(unpacked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The published list has numbered operations, a source column and comment lines; times come out the same."""
    transactions = read_transactions(unpacked)
    operations = {"unicast": 0, "multicast": 1, "compute": 2}
    lines = ["# tc_id,actor_id,op,size,src,dest,dep"]
    for x in transactions:
        destinations = " ".join(map(str, x.destinations))
        dependencies = " ".join(map(str, x.dependencies))
        lines.append(f"{x.number},{x.actor},{operations[x.operation]},{x.size},{x.actor},{destinations},{dependencies}")
    published = tmp_path / "tc.csv"
    published.write_text("\n".join(lines) + "\n")
    output = tmp_path / "out.csv"
    assert main(["replay-transactions", str(published), "--mesh", "4x5", "--memory", "none", "-o", str(output)]) == 0
    assert "total cycles 145885" in capsys.readouterr().out
    starts = [line.split(",")[9:12] for line in output.read_text().splitlines()[1:]]
    assert starts == [line.split(",")[9:12] for line in unpacked.read_text().splitlines()[1:]]


def test_order_of_endpoints_within_a_cycle() -> None:
    """A completion at endpoint 1 in cycle t lets endpoint 2 start in t, but endpoint 0 only in t + 1."""
    transactions = [
        Transaction(0, 1, "compute", 10),
        Transaction(1, 2, "compute", 5, dependencies=(0,)),
        Transaction(2, 0, "compute", 5, dependencies=(0,)),
        Transaction(3, 1, "compute", 5),
    ]
    times = replay_transactions(transactions, 2, 2).times
    assert (times[0].start, times[0].end) == (2, 12)
    assert times[1].start == 12 and times[2].start == 13
    assert times[3].start == 13


def test_a_cycle_of_dependencies_is_told() -> None:
    transactions = [Transaction(0, 0, "compute", 1, (), (1,)), Transaction(1, 1, "compute", 1, (), (0,))]
    with pytest.raises(SimulationError, match="2 transactions wait for each other"):
        replay_transactions(transactions, 2, 2)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("", "no transactions"),
        ("a,b\n1,2\n", "unknown columns"),
        ("tc,actor,op,size,dests\n", "missing column"),
        ("tc,actor,op,size,dests,deps\n0,0,fly,1,1,\n", "op: no such operation"),
        ("tc,actor,op,size,dests,deps\n0,0,unicast,x,1,\n", "size: not numbers"),
        ("tc,actor,op,size,dests,deps\n0,0,unicast,0,1,\n", "size: too small"),
        ("tc,actor,op,size,dests,deps\n0,0,unicast,1,1 2,\n", "a unicast with 2 destinations"),
        ("tc,actor,op,size,dests,deps\n0,0,compute,1,,7\n", "depends on one that is not there"),
        ("tc,actor,op,size,dests,deps\n0,0,compute,1,,\n0,1,compute,1,,\n", "stands twice"),
    ],
)
def test_bad_lists(text: str, phrase: str, tmp_path: Path) -> None:
    path = tmp_path / "tc.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=phrase):
        read_transactions(path)


def test_endpoints_outside_the_mesh() -> None:
    with pytest.raises(InputError, match=r"outside the 2x2 mesh \(found 99\)"):
        replay_transactions([Transaction(0, 0, "unicast", 1, (99,))], 2, 2)


def test_a_destination_named_twice() -> None:
    with pytest.raises(InputError, match=r"transaction 5 names a destination twice \(found '1 1'\)"):
        replay_transactions([Transaction(5, 0, "multicast", 1, (1, 1))], 2, 2)


def test_dram_rooms_grow() -> None:
    """More writes in flight and more messages than there is room for at first: every packet is credited, once."""
    dram = 38 - 4 - 5
    writes = [Transaction(n, n % 16, "unicast", 100, (dram,)) for n in range(64)]
    reads = [Transaction(64 + n, dram, "unicast", 50, (n % 16,)) for n in range(4)]
    replay = replay_transactions(writes + reads, 4, 5, "dramsim2")
    times = replay.times
    assert all(times[x.number].end == times[x.number].dram_write_end for x in writes)
    starts = [times[x.number].start for x in reads]
    assert starts == sorted(starts, key=lambda start: start or 0) and starts[0] == 2
    # A packet of 5 flits each; the DRAM's link takes one flit a cycle.
    assert 6400 * 5 < max(times[x.number].end or 0 for x in writes) < 6400 * 5 * 1.1
    assert replay.total_cycles in {max(t.end or 0 for t in times.values()) + late for late in (0, 1)}


MAPPINGS = DATA / "mappings"


@pytest.mark.parametrize("path", sorted(MAPPINGS.glob("*.json")), ids=lambda path: path.stem)
def test_the_generator_makes_the_published_list(path: Path) -> None:
    lines = list(transaction_lines(PublishedDataflow(published_schedule(path)).transactions()))
    expected = gzip.decompress((DATA / f"{path.stem}.no_dram.transactions.csv.gz").read_bytes()).decode().splitlines()
    assert lines == [",".join(line.split(",")[:9]) for line in expected]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the full reference folder is not here")
@pytest.mark.parametrize("path", sorted(SHARED.glob("*.json")), ids=lambda path: path.stem)
def test_the_generator_makes_every_published_list(path: Path) -> None:
    lines = list(transaction_lines(PublishedDataflow(published_schedule(path)).transactions()))
    expected = (SHARED / f"{path.stem}.dramsim2.transactions.csv").read_text().splitlines()
    assert lines == [",".join(line.split(",")[:9]) for line in expected]


def several_network_steps() -> Schedule:
    """Two memory steps of four network steps; a reduction loop at the global buffer brings partial sums back."""
    arch = cosa.load_architecture("cosa2021")
    layer = cosa.Layer(name="steps", R=1, S=1, P=8, Q=2, C=8, K=32, N=1)
    loops: dict[str, list[Loop]] = {
        "DRAM": [Loop(dim="Q", bound=2)],
        "GlobalBuffer": [
            Loop(dim="C", bound=2),
            Loop(dim="K", bound=2),
            Loop(dim="K", bound=4, kind="spatial", axis="y"),
            Loop(dim="C", bound=4, kind="spatial", axis="x"),
        ],
        "WeightBuffer": [Loop(dim="K", bound=4)],
        "Registers": [Loop(dim="P", bound=8)],
    }
    nest = [
        ScheduleLevel(level=level.name, keeps=level.keeps, loops=tuple(loops.get(level.name, [])))
        for level in arch.levels[::-1]
    ]
    return Schedule.make(layer, arch, tuple(nest), Provenance(mapper="hand", version="test"))


def test_several_network_steps() -> None:
    """What the rules say of double buffering, partial sums and stores, on a nest small enough to read."""
    transactions = list(PublishedDataflow(several_network_steps()).transactions())
    by_class: dict[str, list[Transaction]] = {}
    for x in transactions:
        by_class.setdefault(dict(x.labels)["class"], []).append(x)
    counts = {name: len(found) for name, found in by_class.items()}
    assert counts == {
        "inputs_dram_to_gb": 2,
        # Inputs do not depend on K: sent when C steps (the loop inside stands at 0), to four columns of PEs.
        "inputs_gb_to_pe": 2 * 2 * 4,
        # Loaded in the two network steps with C = 1, by groups of PEs that share outputs (the rows).
        "psums_gb_to_pe": 2 * 2 * 4,
        # C and K are both the weights' own: sent in each of the eight steps, to each PE alone.
        "weights_dram_to_pe": 2 * 4 * 16,
        "compute": 2 * 4 * 16,
        # Along each row to its last PE.
        "psums_pe_to_pe": 2 * 4 * 4 * 3,
        "outputs_pe_to_gb": 2 * 4 * 4,
        "outputs_gb_to_dram": 2,
    }
    computes = [x.number for x in by_class["compute"] if dict(x.labels)["mem_step"] == "0"]
    third_step = [x for x in by_class["weights_dram_to_pe"] if dict(x.labels)["noc_step"] == "2"]
    assert third_step[0].dependencies == (computes[0],)
    replay = replay_transactions(transactions, 4, 5)
    assert all(times.end is not None for times in replay.times.values())


def test_what_a_step_waits_for() -> None:
    """Dependencies in the published order: weights, inputs, outputs, then what arrived and left two steps before."""
    transactions = list(PublishedDataflow(several_network_steps()).transactions())

    def found(name: str, step: int, *, source: int | None = None, to: int | None = None) -> list[int]:
        """Transactions of a network step of memory step 0."""
        return [
            x.number
            for x in transactions
            if x.labels[:3] == (("class", name), ("mem_step", "0"), ("noc_step", str(step)))
            and (source is None or x.actor == source)
            and (to is None or to in x.destinations)
        ]

    def sent(step: int, pe: int) -> list[int]:
        names = ("weights_dram_to_pe", "inputs_gb_to_pe", "psums_gb_to_pe")
        return [number for name in names for number in found(name, step, to=pe)]

    by_number = {x.number: list(x.dependencies) for x in transactions}
    assert len(sent(2, 1)) == 3 and len(sent(0, 1)) == 2 and len(sent(1, 1)) == 1
    (first,), (second,), (third,) = (found("compute", step, source=1) for step in (0, 1, 2))
    assert by_number[first] == sent(0, 1)
    assert by_number[second] == sent(1, 1) + sent(0, 1)
    # PE 1 takes the sums of PE 0 and passes them on to PE 2: it waits for what it took, not for what it passed on.
    arrived = found("psums_pe_to_pe", 0, source=0, to=1)
    assert len(arrived) == 1 and by_number[third] == sent(2, 1) + arrived + sent(0, 1)
    # PE 3 is the last one of its row, which sends the tile.
    (last,) = found("compute", 2, source=3)
    store = found("outputs_pe_to_gb", 0, source=3)
    assert by_number[last] == sent(2, 3) + found("psums_pe_to_pe", 0, to=3) + store + sent(0, 3)
    # A multicast waits for the computes of its PEs two steps before, then for what the global buffer has loaded.
    inputs = found("inputs_gb_to_pe", 2)[0]
    computes = [number for pe in (0, 4, 8, 12) for number in found("compute", 0, source=pe)]
    (loaded,) = (x.number for x in transactions if x.labels[:2] == (("class", "inputs_dram_to_gb"), ("mem_step", "0")))
    assert by_number[inputs] == [*computes, loaded]


EVEN = [(0, 2), (4, 6), (8, 10), (12, 14), (2, 6), (6, 10), (10, 14)]


@pytest.mark.parametrize(
    ("spread", "expected"),
    [
        # Two groups of eight PEs in alternate columns, as the published list of ResNet-50's input.73 has them.
        ("C8 P2", [*EVEN, *((a + 1, b + 1) for a, b in EVEN)]),
        # A group is a column, or a row.
        ("C4 K4", [(pe + 4 * row, pe + 4 * row + 4) for pe in range(4) for row in range(3)]),
        ("K4 C4", [(4 * row + pe, 4 * row + pe + 1) for row in range(4) for pe in range(3)]),
        # Reductions outside and inside of another loop: pairs in two rows, then down; groups by their first PE.
        ("C2 K2 C2 P2", [(a + g, b + g) for g in (0, 1, 4, 5) for a, b in ((0, 2), (8, 10), (2, 10))]),
        ("K2 C2 P4", [(pe, pe + 4) for pe in (0, 1, 2, 3, 8, 9, 10, 11)]),
        # Rows that a group fills unequally, in a part of the mesh.
        ("S3 K2", [(0, 2), (2, 4), (1, 3), (3, 5)]),
        ("R3 S3", [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7), (3, 7), (7, 8)]),
    ],
)
def test_reductions_are_listed_group_by_group(spread: str, expected: list[tuple[int, int]]) -> None:
    arch = cosa.load_architecture("cosa2021")
    loops = tuple(Loop(dim=cast(Dim, x[0]), bound=int(x[1:]), kind="spatial", axis="row_major") for x in spread.split())
    nest = tuple(
        ScheduleLevel(level=level.name, keeps=level.keeps, loops=loops if level.name == "GlobalBuffer" else ())
        for level in arch.levels[::-1]
    )
    bounds: dict[str, Any] = dict.fromkeys("RSPQCKN", 1)
    for loop in loops:
        bounds[loop.dim] *= loop.bound
    schedule = Schedule.make(cosa.Layer(name="groups", **bounds), arch, nest, Provenance(mapper="hand", version="test"))
    listed = list(PublishedDataflow(schedule).transactions())
    assert [(x.actor, *x.destinations) for x in listed if x.labels[0] == ("class", "psums_pe_to_pe")] == expected
    # Who passes nothing on sends the tile, group by group.
    passing = {source for source, _ in expected}
    ends = list(dict.fromkeys(destination for _, destination in expected if destination not in passing))
    assert [x.actor for x in listed if x.labels[0] == ("class", "outputs_pe_to_gb")] == ends


def test_transactions_command(main_job: Schedule, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main_job.save(tmp_path / "s.json")
    output = tmp_path / "tc.csv"
    assert main(["transactions", "--schedule", str(tmp_path / "s.json"), "-o", str(output)]) == 0
    assert len(read_transactions(output)) == int(capsys.readouterr().out.split()[0])
    assert main(["transactions", "--schedule", str(tmp_path / "s.json"), "--dataflow", "x", "-o", str(output)]) == 2
