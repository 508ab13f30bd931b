"""``cosa evaluate`` and ``cosa.evaluate``: what they say, and that everything an architecture states matters."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import cosa as package
from cosa.analytical.energy import dram_energy_pj, mac_energy_pj, sram_energy_pj, vector_access_energy_pj
from cosa.analytical.evaluation import evaluate
from cosa.analytical.traffic import Traffic
from cosa.commands.main import CONVENTIONS
from cosa.common.errors import InfeasibleError, InputError
from cosa.model.arch import Architecture, load_architecture
from cosa.model.schedule import Schedule
from tests.conftest import Ran


def analytical_only(architecture: Architecture) -> dict[str, Any]:
    """The same hierarchy without mesh and DRAM block."""
    data = architecture.model_dump(mode="json")
    for level in data["levels"]:
        if level["fanout"] == "mesh":
            level["fanout"] = {"x": 4, "y": 4}
    del data["noc"], data["dram"]
    return data


def test_the_library_call(schedule: Schedule, schedule_file: Path) -> None:
    found = package.evaluate(schedule)
    assert found == package.evaluate(schedule_file, convention="timeloop")
    assert (found.convention, found.compute_cycles, found.cycles) == ("timeloop", 112896, 232423)
    assert (found.bound_by, found.levels[-1].read_words) == ("read bandwidth of DRAM", 2324224)
    assert package.evaluate(schedule, convention="exact").convention == "exact"
    with pytest.raises(InputError, match="no such convention"):
        package.evaluate(schedule, convention="timeloob")  # type: ignore[arg-type]


def test_an_infeasible_schedule_is_refused(schedule: Schedule) -> None:
    data = schedule.architecture.model_dump(mode="json")
    data["levels"][3]["capacity_words"] = 1
    small = schedule.with_architecture(Architecture.from_data(data))
    with pytest.raises(InfeasibleError, match="InputBuffer"):
        package.evaluate(small)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_json_adds_up(cosa: Callable[..., Ran], schedule_file: Path, convention: str) -> None:
    ran = cosa("evaluate", schedule_file, "--json", "--convention", convention)
    assert (ran.code, ran.err) == (0, "")
    view = json.loads(ran.out)
    assert (view["kind"], view["schema_version"], view["convention"]) == ("evaluation", 1, convention)
    items = [item for level in view["levels"] for item in level["tensors"].values()]
    assert view["energy_pj"] == pytest.approx(view["mac_energy_pj"] + sum(item["energy_pj"] for item in items))
    assert view["cycles"] == max([view["compute_cycles"], *(level["cycles"] for level in view["levels"])])
    assert view["utilisation"] == view["macs"] / view["cycles"] / 1024
    assert [level["level"] for level in view["levels"]][:2] == ["DRAM", "GlobalBuffer"]
    for item in items:
        assert item["energy_pj"] > 0
        assert item["energy_pj_per_word"] == pytest.approx(item["energy_pj"] / item["accessed_words_all_instances"])
    roof = view["roofline"]
    assert roof["attained_macs_per_cycle"] <= roof["roof_macs_per_cycle"] <= roof["peak_macs_per_cycle"]
    assert bool(view["networks"]) == (convention != "exact") and bool(view["hops"]) == (convention == "exact")


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_text_names_every_level_unit_and_convention(
    cosa: Callable[..., Ran], schedule_file: Path, convention: str
) -> None:
    ran = cosa("evaluate", schedule_file, "--convention", convention)
    assert (ran.code, ran.err) == (0, "")
    levels = ("DRAM", "GlobalBuffer", "InputBuffer", "WeightBuffer", "AccumulationBuffer", "Registers")
    for word in (*levels, "pJ/access", "words/access", "uJ", "MACs a word", f"convention {convention}", "bound by"):
        assert word in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_errors(cosa: Callable[..., Ran], schedule_file: Path, tmp_path: Path) -> None:
    cosa("evaluate", tmp_path / "no.json").assert_error("no such file")
    cosa("evaluate", schedule_file, "--convention", "exakt").assert_error("--convention", "did you mean exact?")


def test_bandwidth_binds_and_is_named(schedule: Schedule, cosa: Callable[..., Ran], tmp_path: Path) -> None:
    data = schedule.architecture.model_dump(mode="json")
    data["levels"][3]["read_bandwidth_words_per_cycle"] = 2
    slow = schedule.with_architecture(Architecture.from_data(data))
    for convention in CONVENTIONS:
        found = evaluate(slow.layer, slow.architecture, slow.nest, convention)  # type: ignore[arg-type]
        reads = found.levels[3].tensors["inputs"].reads
        assert (found.cycles, found.bound_by) == (-(-reads // 2), "read bandwidth of InputBuffer")
        assert found.utilisation < 0.5
    assert Traffic(slow.layer, slow.architecture, slow.nest).analytical_cycles == found.cycles
    assert Traffic(schedule.layer, schedule.architecture, schedule.nest).analytical_cycles == 232423
    slow.save(tmp_path / "slow.json")
    assert "bound by read bandwidth of InputBuffer" in cosa("evaluate", tmp_path / "slow.json").out


def test_energies_of_the_packaged_simba() -> None:
    simba = load_architecture("simba_4x4")
    energies = [vector_access_energy_pj(simba, level) for level in range(6)]
    published = [0.4890075377, 1.575376884, 7.115577889, 4.703517588, 16.7638191, 6400]
    assert energies == pytest.approx(published, rel=1e-9)
    assert mac_energy_pj(simba) == 0.25


def test_the_estimator_grows_with_size_and_width() -> None:
    assert sram_energy_pj(1, 1, 1) > 0
    assert sram_energy_pj(2048, 16, 1) > sram_energy_pj(1024, 16, 1)
    assert sram_energy_pj(1024, 32, 1) > sram_energy_pj(1024, 16, 1)
    assert dram_energy_pj(8, 64) == 6400


def test_without_mesh_and_dram_block(schedule: Schedule, cosa: Callable[..., Ran], tmp_path: Path) -> None:
    from nocsim import simulate

    plain = Architecture.from_data(analytical_only(schedule.architecture))
    moved = schedule.with_architecture(plain)
    for convention in CONVENTIONS:
        ours = evaluate(moved.layer, plain, moved.nest, convention)  # type: ignore[arg-type]
        theirs = evaluate(schedule.layer, schedule.architecture, schedule.nest, convention)  # type: ignore[arg-type]
        assert ours == theirs
    moved.save(tmp_path / "plain.json")
    for command in ("show", "evaluate"):
        assert cosa(command, tmp_path / "plain.json").code == 0
    for call in (lambda: simulate(moved), lambda: plain.mesh_level, lambda: plain.with_mesh("2x2")):
        with pytest.raises(InputError, match="no mesh of PEs is stated"):
            call()
    assert package.schedule(schedule.layer, plain, objective="cosa").provenance.solver_status == "optimal"


def test_a_mesh_without_a_dram_block_is_not_simulated(schedule: Schedule) -> None:
    from nocsim import simulate

    data = schedule.architecture.model_dump(mode="json") | {"dram": None}
    with pytest.raises(InputError, match="no DRAM is stated"):
        simulate(schedule.with_architecture(Architecture.from_data(data)))


STATED = {
    "capacity_words": 8192,
    "word_bits": 16,
    "block_words": 4,
    "cluster_size": 2,
    "technology": "DRAM",
    "vector_access_energy_pj": 3.5,
    "read_bandwidth_words_per_cycle": 0.001,
    "write_bandwidth_words_per_cycle": 0.001,
}


@pytest.mark.parametrize("field", STATED)
def test_everything_a_level_states_changes_a_result(schedule: Schedule, field: str) -> None:
    changed_somewhere = 0
    for level in range(6):
        data = schedule.architecture.model_dump(mode="json")
        if data["levels"][level][field] in (STATED[field], None) and field == "capacity_words":
            continue
        data["levels"][level][field] = STATED[field]
        try:
            other = schedule.with_architecture(Architecture.from_data(data))
        except InputError:
            continue  # one instance has no clusters of two
        before = asdict(evaluate(schedule.layer, schedule.architecture, schedule.nest))
        after = asdict(evaluate(other.layer, other.architecture, other.nest))
        if level < 5 or field not in ("technology", "cluster_size"):
            assert after != before, (level, field)
            changed_somewhere += 1
    assert changed_somewhere >= 3


@pytest.mark.parametrize(("field", "value"), [("word_bits", 16), ("energy_pj", 3.0)])
def test_everything_a_mac_states_changes_a_result(schedule: Schedule, field: str, value: float) -> None:
    data = schedule.architecture.model_dump(mode="json")
    data["mac"][field] = value
    other = schedule.with_architecture(Architecture.from_data(data))
    found = evaluate(other.layer, other.architecture, other.nest)
    assert found.mac_energy_pj == schedule.layer.macs * (value if field == "energy_pj" else 1.0)


def test_a_stated_zero_energy_is_no_estimate(schedule: Schedule) -> None:
    data = schedule.architecture.model_dump(mode="json")
    data["levels"][0]["vector_access_energy_pj"] = 0.0
    other = schedule.with_architecture(Architecture.from_data(data))
    assert evaluate(other.layer, other.architecture, other.nest).levels[0].tensors["weights"].energy_pj == 0.0


def test_groups_are_an_axis_of_every_tensor(layer: Any, simba: Architecture) -> None:
    from tests.nocsim.nests import random_schedule

    seen = 0
    for seed in range(200):
        schedule = random_schedule(seed)
        if schedule.layer.G == 1:
            continue
        seen += 1
        found = evaluate(schedule.layer, schedule.architecture, schedule.nest)
        for tensor, item in found.levels[-1].tensors.items():
            assert item.tile_words % schedule.layer.G == 0, tensor
    assert seen > 20
