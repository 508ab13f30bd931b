"""The whole machine: conservation, bounds, ideal limits, determinism, replaceable parts, switches."""

from __future__ import annotations

from typing import Any

import pytest

import nocsim
from cosa.common.errors import InfeasibleError, InputError
from cosa.model.arch import Architecture, load_architecture
from cosa.model.schedule import Schedule
from nocsim.machine.accelerator import Accelerator, Parts
from nocsim.machine.dram_port import DramPort
from nocsim.machine.global_buffer import GlobalBuffer
from nocsim.machine.pe import ProcessingElement
from nocsim.result.result import Result
from tests.nocsim.nests import architecture, random_schedule

ARCHITECTURES = ("cosa2021", "simba_4x4", "simba_4x4_wide", "simba_8x8", "simba_8x_gbuf", "simba_paper")

NOCS: tuple[dict[str, Any], ...] = (
    {"fifo_flits": 2, "packet_payload_flits": 1, "multicast_reservation_flits": 2},
    {"fifo_flits": 5},
    {"partial_packets": "full", "flit_bits": 128},
)
MACHINES: tuple[dict[str, Any], ...] = (
    {
        "chunk_packets": 1,
        "reads_in_flight": 1,
        "dram_packet": "holds_path",
        "send_engine": "shared",
        "store_waits_for": "all_pes",
        "dram_write_buffer_packets": 1,
    },
    {"chunk_packets": None, "finished_outputs": "partial_sum_width"},
    {"reads_in_flight": 2, "dram_packet": "holds_path"},
)


def with_switches(arch: Architecture, **machine: Any) -> Architecture:
    data = arch.model_dump(mode="json")
    data["machine"] |= machine
    return Architecture.from_data(data)


def check_conservation(accelerator: Accelerator, result: Result) -> None:
    """Every byte and word sent was received, by whoever it was for; links carried what was routed over them."""
    expected: dict[tuple[str, int], int] = {}
    for (tensor, _, dsts), load in accelerator.network.loads.items():
        for dst in dsts:
            expected[tensor, dst] = expected.get((tensor, dst), 0) + load.n_bytes
    assert accelerator.network.received_bytes == expected
    used = len(accelerator.pes)
    for flow in result.flows:
        assert flow.sent_words <= flow.received_words <= flow.sent_words * used
        if flow.kind != "fill":
            assert flow.received_words == flow.sent_words
    for flow in accelerator.traffic.flows:
        count = accelerator.ledger.flows[flow.tensor, flow.source, flow.destination, flow.kind]
        assert (count.sent_words, count.received_words) == (flow.sent_words, flow.received_words)
    for link in result.links:
        assert link.flits == sum(load.flits for load in link.tensors.values()), link.link
        assert 0 <= link.busy_share <= 1
    sent = {t: sum(node.sent[t] for node in result.nodes) for t in result.tensors}
    assert sent == {t: load.bytes for t, load in result.tensors.items()}


def check_cycles(accelerator: Accelerator, result: Result) -> None:
    """No run beats its compute; the cycles of every PE add up."""
    cycles = result.cycles
    assert cycles.total >= cycles.steps * (cycles.cycles_per_step + cycles.pipeline_latency_per_step)
    assert cycles.steps * cycles.cycles_per_step == cycles.compute_only
    assert cycles.compute_only <= cycles.bound <= cycles.total
    assert result.simulated_over_bound == cycles.total / cycles.bound
    for pe in result.pes:
        parts = (pe.waiting_inputs, pe.waiting_weights, pe.waiting_partial_sums, pe.drain, pe.idle)
        assert min(parts) >= 0
        assert pe.computing + sum(parts) == cycles.total, pe
        if pe.used:
            assert pe.computing == cycles.steps * (cycles.cycles_per_step + cycles.pipeline_latency_per_step)


def run(schedule: Schedule, **options: Any) -> tuple[Accelerator, Result]:
    accelerator = Accelerator(schedule, **options)
    accelerator.run()
    from nocsim.result.collect import collect

    return accelerator, collect(accelerator, None)


@pytest.mark.parametrize("block", range(12))
def test_random_machines_end_with_every_byte_delivered(block: int) -> None:
    """One-tile buffers, tiny FIFOs, one read at a time, any bypass: nothing hangs, nothing is lost."""
    for seed in range(1000 + block * 12, 1012 + block * 12):
        schedule = random_schedule(
            seed,
            noc=NOCS[seed % 3],
            machine=MACHINES[seed // 3 % 3] | {"halo_reuse": seed % 2 == 0},
            pe={"adder_words_per_cycle": (None, 1, 3)[seed % 3], "pipeline_latency_cycles": seed % 4},
        )
        accelerator, result = run(schedule)
        assert accelerator.mesh is not None and accelerator.mesh.idle
        check_conservation(accelerator, result)
        check_cycles(accelerator, result)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_runs_the_main_layer(main_job: Schedule, name: str) -> None:
    accelerator, result = run(main_job.with_architecture(load_architecture(name)))
    check_conservation(accelerator, result)
    check_cycles(accelerator, result)
    assert result.cycles.total > result.cycles.compute_only


@pytest.mark.parametrize("latency", [0, 1, 7])
def test_ideal_network_and_memory_leave_compute_and_pipeline(small_job: Schedule, latency: int) -> None:
    """Exactly compute cycles + steps x pipeline latency."""
    data = small_job.architecture.model_dump(mode="json")
    data["pe"]["pipeline_latency_cycles"] = latency
    schedule = small_job.with_architecture(Architecture.from_data(data))
    accelerator, result = run(schedule, ideal_network=True, ideal_memory=True)
    assert result.cycles.total == result.cycles.compute_only + result.cycles.steps * latency
    check_cycles(accelerator, result)


@pytest.mark.parametrize("seed", range(2000, 2040))
def test_ideal_limit_of_random_schedules(seed: int) -> None:
    latency = seed % 5
    accelerator, result = run(
        random_schedule(seed, pe={"pipeline_latency_cycles": latency}), ideal_network=True, ideal_memory=True
    )
    assert result.cycles.total == result.cycles.compute_only + result.cycles.steps * latency
    assert accelerator.network.received_bytes


def test_ideal_parts_only_help(main_job: Schedule) -> None:
    full = nocsim.simulate(main_job).cycles.total
    no_mesh = nocsim.simulate(main_job, ideal_network=True)
    no_dram = nocsim.simulate(main_job, ideal_memory=True)
    assert no_mesh.cycles.total < full and no_dram.cycles.total < full
    assert no_mesh.ideal_network and not no_mesh.links and no_mesh.dram.channels
    assert no_dram.ideal_memory and no_dram.links and not no_dram.dram.channels


def test_same_input_same_bytes(small_job: Schedule) -> None:
    first, second = (nocsim.simulate(small_job).to_json(exclude={"timing"}) for _ in range(2))
    assert first == second


class SlowPe(ProcessingElement):
    def step_cycles(self) -> int:
        return super().step_cycles() + 1000


class SlowBuffer(GlobalBuffer):
    def send_to(self, *args: Any) -> Any:
        yield self._env.timeout(500)
        yield from super().send_to(*args)


class SlowPort(DramPort):
    def _serve_reads(self) -> Any:
        yield self._env.timeout(5000)
        yield from super()._serve_reads()


@pytest.mark.parametrize("parts", [Parts(pe=SlowPe), Parts(global_buffer=SlowBuffer), Parts(dram_port=SlowPort)])
def test_replacing_a_process_changes_the_run(small_job: Schedule, parts: Parts) -> None:
    usual = nocsim.simulate(small_job)
    changed = nocsim.simulate(small_job, parts=parts)
    assert changed.cycles.total >= usual.cycles.total + 500
    assert changed.flows == usual.flows


@pytest.mark.parametrize(
    "machine",
    [
        {"reads_in_flight": 1},
        {"dram_packet": "holds_path", "reads_in_flight": 1},
        {"send_engine": "shared"},
        {"store_waits_for": "all_pes"},
        {"finished_outputs": "partial_sum_width"},
        {"halo_reuse": False},
        {"chunk_packets": None},
        {"dram_write_buffer_packets": 8},
        {"compute_starts": "first_word"},
        {"reduction": "tree"},
        {"placement": "transposed"},
        {"placement": "column_major"},
    ],
    ids=lambda machine: "-".join(machine),
)
def test_every_machine_switch_does_something(main_job: Schedule, machine: dict[str, Any]) -> None:
    usual = nocsim.simulate(main_job)
    switched = nocsim.simulate(main_job, architecture=with_switches(main_job.architecture, **machine))
    assert switched.cycles.total != usual.cycles.total


@pytest.mark.parametrize(
    ("block", "changes"),
    [
        ("dram", {"device": "ddr3_1333_x4"}),
        ("dram", {"mapping": "row:rank:bank:bankgroup:column"}),
        ("dram", {"clocks_per_core_cycle": "1/3"}),
        ("noc", {"flit_bits": 128}),
        ("noc", {"fifo_flits": 5}),
        ("noc", {"packet_payload_flits": 2}),
        ("noc", {"partial_packets": "full"}),
        ("noc", {"dram_ports": [{"router": [0, -1], "side": "south"}]}),
        ("pe", {"pipeline_latency_cycles": 9}),
        ("pe", {"adder_words_per_cycle": 1}),
    ],
)
def test_every_hardware_field_does_something(main_job: Schedule, block: str, changes: dict[str, Any]) -> None:
    data = main_job.architecture.model_dump(mode="json")
    data[block] |= changes
    if changes.get("device", "").startswith("ddr3"):
        data["dram"]["mapping"] = "row:rank:bank:column"
    usual = nocsim.simulate(main_job)
    assert nocsim.simulate(main_job, architecture=Architecture.from_data(data)).cycles.total != usual.cycles.total


def test_single_buffers_are_slower(main_job: Schedule) -> None:
    data = main_job.architecture.model_dump(mode="json")
    for level in data["levels"]:
        level["buffers"] = 1
    single = nocsim.simulate(main_job, architecture=Architecture.from_data(data))
    assert single.cycles.total > nocsim.simulate(main_job).cycles.total


def test_a_larger_mesh_leaves_pes_idle(small_job: Schedule) -> None:
    result = nocsim.simulate(small_job, mesh="8x8")
    assert result.mesh == "8x8" and len(result.pes) == 64
    assert sum(pe.used for pe in result.pes) == sum(pe.used for pe in nocsim.simulate(small_job).pes)
    assert all(pe.idle == result.cycles.total for pe in result.pes if not pe.used)


def test_a_mesh_that_is_too_small_names_the_loops(main_job: Schedule) -> None:
    with pytest.raises(InfeasibleError, match=r"GlobalBuffer: spatial loops [A-Z]\d+.* along [xy] need \d+.*2x2 mesh"):
        nocsim.simulate(main_job, mesh="2x2")


def test_another_architecture_must_have_the_levels(main_job: Schedule) -> None:
    with pytest.raises(InputError, match="does not have the levels"):
        nocsim.simulate(main_job, architecture=architecture([["weights", "inputs", "outputs"]]))


def test_another_architecture_must_have_the_capacities(main_job: Schedule) -> None:
    data = main_job.architecture.model_dump(mode="json")
    data["levels"][3]["capacity_words"] = 7
    with pytest.raises(InfeasibleError, match=r"InputBuffer: its tiles need \d+, there are 7"):
        nocsim.simulate(main_job, architecture=Architecture.from_data(data))


def test_ports_need_places_of_their_own(main_job: Schedule) -> None:
    data = main_job.architecture.model_dump(mode="json")
    data["noc"]["global_buffer_ports"] = [{"router": [0, 0]}]
    with pytest.raises(InputError, match="sits where another port or a PE in use is"):
        nocsim.simulate(main_job, architecture=Architecture.from_data(data))


def test_unknown_dram_device_names_the_known_ones(main_job: Schedule) -> None:
    data = main_job.architecture.model_dump(mode="json")
    data["dram"]["device"] = "ddr4_2400_x9"
    with pytest.raises(InputError, match="ddr4_2400_x8"):
        nocsim.simulate(main_job, architecture=Architecture.from_data(data))


def test_a_padded_schedule_runs_as_the_padded_layer() -> None:
    """Cycles and words are those of the same nest of the larger layer; MACs are those of the layer asked for."""
    big = random_schedule(3)
    dim = max(big.layer.bounds, key=lambda dim: big.layer.bounds[dim])
    layer = big.layer.model_copy(update={dim: big.layer.bounds[dim] - 1})
    small = Schedule.make(layer, big.architecture, big.nest, big.provenance, padded={dim: big.layer.bounds[dim]})
    of_big, of_small = nocsim.simulate(big), nocsim.simulate(small)
    assert (of_small.cycles, of_small.flows, of_small.pes) == (of_big.cycles, of_big.flows, of_big.pes)
    assert (of_small.macs, of_small.padding_macs) == (layer.macs, big.layer.macs - layer.macs)
    assert of_big.padding_macs == 0
    assert of_small.mac_utilisation == pytest.approx(of_big.mac_utilisation * layer.macs / big.layer.macs)
