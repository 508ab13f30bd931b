"""Axes, multipliers, zips, conditions, and what is said of mistakes in them."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cosa
from cosa.common.errors import InputError
from cosa.experiments.figures import on_chip_buffer_bytes
from cosa.model.arch import Architecture, architecture_names, load_architecture
from cosa.model.networks import FOUR_NETWORKS, load_network
from nocsim.experiments.sweep.fields import leaves, set_value, value_at
from nocsim.experiments.sweep.spec import Sweep, load_sweep, sweep_names
from tests.conftest import Command
from tests.nocsim.sweep.conftest import CONV


def axes(**given: Any) -> dict[str, Any]:
    return {"layer": CONV} | {name.replace("__", "."): values for name, values in given.items()}


def test_the_cross_product_varies_the_last_axis_fastest() -> None:
    points = Sweep(axes=axes(noc__mesh=["2x2", "4x4"], noc__flit_bits=[32, 64, 128])).points()
    assert [(p.axes["noc.mesh"], p.axes["noc.flit_bits"]) for p in points] == [
        (mesh, bits) for mesh in ("2x2", "4x4") for bits in (32, 64, 128)
    ]
    assert [point.number for point in points] == list(range(6))
    assert len({point.inputs_hash for point in points}) == 6
    for point in points:
        assert point.architecture is not None and point.architecture.noc is not None
        assert point.architecture.noc.mesh == point.axes["noc.mesh"]
        assert point.architecture.noc.flit_bits == point.axes["noc.flit_bits"]
        assert point.architecture.noc.pes == (4 if point.axes["noc.mesh"] == "2x2" else 16)


def test_zipped_axes_step_together() -> None:
    given = axes(noc__mesh=["2x2", "4x4"], noc__flit_bits=[32, 64], mapper=["published", "random"])
    points = Sweep(axes=given, zip=[["noc.mesh", "noc.flit_bits"]]).points()
    assert [(p.axes["noc.mesh"], p.axes["noc.flit_bits"], p.options.mapper) for p in points] == [
        ("2x2", 32, "published"),
        ("2x2", 32, "random"),
        ("4x4", 64, "published"),
        ("4x4", 64, "random"),
    ]


def test_every_field_of_every_architecture_is_an_axis() -> None:
    """Set to the value that it has, each changes nothing; some other value of its type is set exactly there."""
    for name in architecture_names():
        data = load_architecture(name).model_dump(mode="json")
        paths = list(leaves(data))
        assert len(paths) > 60
        for path in paths:
            changed = copy.deepcopy(data)
            set_value(changed, path, value_at(data, path))
            assert changed == data
            set_value(changed, path, ["other"])
            assert changed != data
            if not path.endswith(".name"):  # a level of another name is found under that one
                assert value_at(changed, path) == ["other"]


def test_multipliers_take_the_value_of_the_architecture() -> None:
    given = axes(architecture=["simba_4x4", "simba_8x_gbuf"], levels__GlobalBuffer__capacity_words=["x0.5", "x8"])
    given["levels[5].read_bandwidth_words_per_cycle"] = "x1.5"
    points = Sweep(axes=given).points()
    sizes = [load_architecture(name).levels[4].capacity_words or 0 for name in given["architecture"]]
    assert [p.axes["levels.GlobalBuffer.capacity_words"] for p in points] == [
        int(size * factor) for size in sizes for factor in (0.5, 8)
    ]
    assert all(
        p.architecture is not None and p.architecture.levels[5].read_bandwidth_words_per_cycle == 15 for p in points
    )


def test_a_capacity_in_bytes_is_one_in_words() -> None:
    """65536 words of 8 bits in the global buffer, 64 words of 24 bits in an accumulation buffer."""
    path = "levels.GlobalBuffer.capacity_bytes"
    points = Sweep(axes={"layer": CONV, path: ["x1", 524288, "x8"]}, where=[f"{path} >= 65536"]).points()
    assert [point.axes[path] for point in points] == [65536, 524288, 524288]
    assert [p.architecture.levels[4].capacity_words for p in points if p.architecture] == [65536, 524288, 524288]
    assert points[1].inputs_hash == points[2].inputs_hash
    in_words = Sweep(axes={"layer": CONV, "levels.GlobalBuffer.capacity_words": "x8"}).points()[0]
    assert in_words.inputs_hash == points[1].inputs_hash
    # With words of another size the bytes stay those of the architecture.
    sizes = {"layer": CONV, "levels[1].capacity_bytes": ["x1", "x2"], "levels[1].word_bits": [24, 32]}
    points = Sweep(axes=sizes).points()
    assert [p.architecture.levels[1].capacity_words for p in points if p.architecture] == [64, 48, 128, 96]
    assert [point.axes["levels[1].capacity_bytes"] for point in points] == [192, 192, 384, 384]


@pytest.mark.parametrize(
    ("given", "phrase"),
    [
        (
            {"levels[1].capacity_bytes": [192, 100]},
            "not a whole number of words of 24 bits (found 100); did you mean 99?",
        ),
        ({"levels[1].capacity_bytes": "8 KB"}, "not a size (found '8 KB'); allowed: bytes > 0"),
        ({"levels[1].capacity_bytes": True}, "not a size (found True)"),
        ({"levels[1].capacity_bytes": "x0.01"}, "192 times 1/100 is not a whole number"),
        ({"levels.DRAM.capacity_bytes": "x2"}, "None cannot be multiplied"),
        ({"noc.capacity_bytes": 1}, "no such field"),
        (
            {"levels[1].capacity_bytes": 192, "levels[1].capacity_words": 64},
            "says the same as levels[1].capacity_words",
        ),
    ],
)
def test_capacities_in_bytes_that_are_wrong(given: dict[str, Any], phrase: str) -> None:
    with pytest.raises(InputError) as caught:
        Sweep(name="mine", axes=axes() | given).points()
    assert f"mine: axes.{next(iter(given))}: " in str(caught.value) and phrase in str(caught.value)


def test_networks_are_their_unique_layers() -> None:
    points = Sweep(axes={"network": ["dlrm", "alexnet"]}).points()
    expected = [(n, e.layer.name, e.count) for n in ("dlrm", "alexnet") for e in load_network(n).layers]
    assert [(p.axes["network"], p.axes["layer"], p.count) for p in points] == expected


def test_conditions() -> None:
    given = axes(noc__mesh=["2x2", "4x4", "8x8"], levels__GlobalBuffer__capacity_words=["x1", "x8"])

    def kept(*where: str) -> list[tuple[Any, Any]]:
        points = Sweep(axes=given, where=list(where)).points()
        return [(p.axes["noc.mesh"], p.positions["levels.GlobalBuffer.capacity_words"]) for p in points]

    every = kept()
    assert kept("pes <= 16") == every[:4] == kept("noc.mesh in ['2x2', '4x4']") == kept("not pes > 16", "layer.K == 16")
    assert kept("levels.GlobalBuffer.capacity_words / 65536 == 8 or pes == 4") == [
        e for e in every if e[1] or e[0] == "2x2"
    ]
    assert kept("mac_units == 64 * pes and levels[4].capacity_words >= 1000 * noc.fifo_flits") == every
    sizes = [on_chip_buffer_bytes(p.architecture) for p in Sweep(axes=given).points() if p.architecture]
    assert kept(f"buffer_bytes < {max(sizes)}") == every[:-1]
    assert kept(f"{min(sizes)} <= buffer_bytes <= {min(sizes)}") == every[:1]


def test_what_has_no_value_is_unknown() -> None:
    """An architecture without a mesh has no PEs: neither more than 100 nor fewer."""
    given = {"layer": CONV, "architecture": ["simba_4x4", "gpu_k80", "simba_8x8"]}

    def kept(*where: str) -> list[str]:
        return [point.axes["architecture"] for point in Sweep(axes=given, where=list(where)).points()]

    assert kept("pes < 20") == kept("not pes >= 20") == kept("2 * pes < 40", "-pes < 0") == ["simba_4x4"]
    assert kept("pes == None") == kept("noc == None") == kept("noc.mesh == None") == ["gpu_k80"]
    assert kept("pes < 20 or pes == None") == kept("pes == None or pes < 20") == ["simba_4x4", "gpu_k80"]
    assert kept("not (pes >= 20 and mac_units > 0)") == ["simba_4x4"]
    assert kept("noc.flit_bits >= 64 or mac_units > 0") == given["architecture"]
    assert kept("pes == None or 64 / pes == 1") == ["gpu_k80", "simba_8x8"]
    with pytest.raises(InputError, match="no point meets all conditions"):
        kept("pes * 0 > 1")


def test_buffer_bytes_by_hand(simba: Architecture) -> None:
    # registers 1024 x 1 B, accumulators 128 x 64 x 3 B, weights 128 x 16384 B, inputs 16 x 4096 B, global 65536 B
    once = 1024 + 128 * 64 * 3 + 128 * 16384 + 16 * 4096 + 65536
    assert on_chip_buffer_bytes(simba) == 2 * once
    shared = Architecture.from_data(simba.model_dump(mode="json") | {"shared_halves": True})
    assert on_chip_buffer_bytes(shared) == once


def test_the_hash_is_of_what_can_change_a_result() -> None:
    def hashes(**given: Any) -> list[str]:
        return [point.inputs_hash for point in Sweep(axes=axes(**given)).points()]

    plain = hashes()
    renamed = Sweep(axes={"layer": CONV | {"name": "other"}}).points()[0]
    assert renamed.inputs_hash == plain[0]
    assert hashes(levels__GlobalBuffer__capacity_words=["x1", 65536, "x2"])[:2] == plain * 2
    others = [hashes(noc__fifo_flits=8), hashes(mapper="random"), hashes(options__seed=1), hashes(objective="compute")]
    others.append([Sweep(axes=axes(), simulate=False).points()[0].inputs_hash])
    assert len({found[0] for found in [plain, *others]}) == 6


def test_impossible_combinations_are_points_that_fail_and_useless_values_are_errors() -> None:
    given = axes(noc__fifo_flits=[7, 5], noc__multicast_reservation_flits=[5, 7])
    points = Sweep(axes=given).points()
    assert [point.architecture is None for point in points] == [False, False, False, True]
    assert "noc.fifo_flits" in str(points[3].error)
    with pytest.raises(InputError, match=r"axes\.noc\.fifo_flits.*found 4"):
        Sweep(axes=axes(noc__fifo_flits=[7, 4])).points()
    assert len(Sweep(axes=given, where=["noc.fifo_flits >= noc.multicast_reservation_flits"]).points()) == 3


@pytest.mark.parametrize(
    ("axis", "phrase"),
    [
        ("noc.fifo_depth", "did you mean noc.fifo_flits?"),
        ("fifo_flits", "did you mean noc.fifo_flits?"),
        ("levels.GlobalBufer.capacity_bytes", "did you mean levels.GlobalBuffer.capacity_bytes?"),
        ("levels.GlobalBufer.capacity_words", "did you mean levels.GlobalBuffer.capacity_words?"),
        ("levels[9].capacity_words", "no such field"),
        ("noc.mesh.columns", "noc.mesh holds '4x4'"),
        ("mappers", "did you mean mapper?"),
        ("dram..device", "not the path of a field"),
    ],
)
def test_an_axis_that_leads_nowhere(axis: str, phrase: str) -> None:
    with pytest.raises(InputError) as caught:
        Sweep(name="mine", axes=axes() | {axis: [1, 2]}).points()
    assert phrase in str(caught.value) and f"mine: axes.{axis}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("axes: {layer: 'resnet50:input.8'}\nwere: [a < 1]", "were: unknown key; allowed: kind"),
        ("axes: {noc.mesh: 4x4}", "neither of layer and network"),
        ("axes: {network: dlrm, layer: 'dlrm:72'}", "both of layer and network"),
        ("axes: {network: dlrm, noc.mesh: []}", "axes.noc.mesh: an axis without values"),
        ("axes: {network: dlrm, noc.mesh: [4x4, 4x4]}", "axes.noc.mesh: the value '4x4' is given twice"),
        ("axes: {network: dlmr}", "did you mean dlrm?"),
        ("axes: {network: [dlrm, dlmr]}", "axes.network: no such network (found 'dlmr')"),
        (
            "axes: {layer: 'resnet50:inpu.8'}",
            "axes.layer: network 'resnet50' has no such layer (found 'resnet50:inpu.8')",
        ),
        ("axes: {layer: 'resnet51:input.8'}", "axes.layer: no such network (found 'resnet51:input.8')"),
        ("axes: {layer: none.yaml}", "axes.layer: none.yaml: no such file"),
        (
            "axes: {network: dlrm, architecture: simba_4x5}",
            "axes.architecture: no such architecture (found 'simba_4x5')",
        ),
        ("axes: {network: dlrm, mapper: randon}", "did you mean random?"),
        ("axes: {network: dlrm, noc.mesh: [4x4, x2]}", "'4x4' cannot be multiplied"),
        ("axes: {network: dlrm, noc.fifo_flits: x0.5}", "7 times 1/2 is not a whole number"),
        ("axes: {network: dlrm, noc.mesh: [4x4, 2x2]}\nzip: [[noc.mesh, network]]", "axes of different length"),
        ("axes: {network: dlrm, noc.mesh: 4x4}\nzip: [[noc.mash, network]]", "did you mean noc.mesh?"),
        ("axes: {network: dlrm}\nwhere: [pes < 1]", "no point meets all conditions"),
        ("axes: {network: dlrm}\nwhere: [pess < 1]", "did you mean pes?"),
        ("axes: {network: dlrm}\nwhere: [pes + 1]", "neither true nor false but 17"),
        ("axes: {network: dlrm}\nwhere: ['pes <']", "where[0]: not a condition"),
        ("axes: {network: dlrm}\nwhere: [\"__import__('os')\"]", "cannot be read"),
        ("axes: {network: dlrm}\nwhere: ['1 / 0 > 2']", "division by zero"),
        (f"axes: {{network: dlrm, options.a: {[*range(400)]}, options.b: {[*range(400)]}}}", "up to 1,120,000 points"),
    ],
)
def test_mistakes_in_files(text: str, phrase: str, tmp_path: Path, nocsim: Command) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    nocsim("sweep", path, "--dry-run").assert_error("bad.yaml", phrase)


def test_from_python_models_are_values(simba: Architecture) -> None:
    other = Architecture.from_data(simba.model_dump(mode="json") | {"name": "other", "clock_ghz": 2.0})
    layer = cosa.Layer.from_data(CONV)
    points = Sweep(axes={"layer": layer, "architecture": (simba, other)}).points()
    assert [point.architecture for point in points] == [simba, other]
    assert [point.axes["architecture"] for point in points] == ["simba_4x4", "other"]


def test_from_python_any_sequence_is_an_axis(tmp_path: Path) -> None:
    expected = [5, 6, 7]
    for values in (range(5, 8), (5, 6, 7), np.arange(5, 8), [np.int64(5), 6, np.uint8(7)]):
        assert [point.axes["noc.fifo_flits"] for point in Sweep(axes=axes(noc__fifo_flits=values)).points()] == expected
    assert Sweep(axes=axes(noc__fifo_flits=np.int64(5))).values("noc.fifo_flits") == [5]
    cosa.Layer.from_data(CONV).to_file(tmp_path / "l.yaml")
    load_architecture("simba_8x8").to_file(tmp_path / "a.yaml")
    point = Sweep(axes={"layer": tmp_path / "l.yaml", "architecture": [tmp_path / "a.yaml"]}).points()[0]
    assert point.layer.K == 16 and point.architecture == load_architecture("simba_8x8")


@pytest.mark.parametrize(
    ("given", "phrase"),
    [
        ({"axes": {"noc.mesh": "4x4"}}, "neither of layer and network"),
        (
            {"axes": axes(noc__fifo_flits={5, 6})},
            "axes.noc.fifo_flits: not plain data (found {5, 6}); allowed: numbers, text, true, false, null, lists",
        ),
        ({"axes": axes(noc__fifo_flits=(i for i in (5, 6)))}, "axes.noc.fifo_flits: not plain data (found <generator"),
        ({"axes": axes(noc__mesh=[object()])}, "axes.noc.mesh[0]: not plain data (found <object"),
        ({"axis": axes()}, "axis: unknown key"),
        ({"axes": axes(), "simulate": "no"}, "simulate: not valid (found 'no')"),
    ],
)
def test_mistakes_in_python(given: dict[str, Any], phrase: str) -> None:
    with pytest.raises(InputError) as caught:
        Sweep(**given)
    assert str(caught.value).startswith("Sweep: ") and phrase in str(caught.value)


def test_files_are_looked_for_beside_the_sweep(tmp_path: Path, simba: Architecture) -> None:
    simba.to_file(tmp_path / "mine.yaml")
    cosa.Layer.from_data(CONV).to_file(tmp_path / "conv.yaml")
    (tmp_path / "s.yaml").write_text("axes: {layer: conv.yaml, architecture: mine.yaml}\n")
    point = load_sweep(tmp_path / "s.yaml").points()[0]
    assert point.architecture == simba and point.layer.K == 16


def test_reading_a_sweep_loads_no_compiler_and_no_solver() -> None:
    """A run starts with it, also one that finds nothing left to do."""
    code = (
        "import sys; from nocsim.experiments.sweep.spec import load_sweep; load_sweep('pe_4x').points();"
        "print(sorted({'numba', 'numpy', 'pyomo', 'highspy', 'simpy'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_packaged_sweeps(nocsim: Command) -> None:
    assert sweep_names() == ["design_space", "gbuf_8x", "pe_4x"]
    assert not set(sweep_names()) & set(architecture_names())
    for name, other in (("pe_4x", "simba_8x8"), ("gbuf_8x", "simba_8x_gbuf")):
        points = load_sweep(name).points()
        assert {point.axes["network"] for point in points} == set(FOUR_NETWORKS)
        found = {point.architecture.content_hash for point in points if point.architecture}
        assert found == {load_architecture(arch).content_hash for arch in ("simba_4x4", other)}
    space = load_sweep("design_space")
    assert 10 < len(space.points()) < len(space.model_copy(update={"where": ()}).points())
    nocsim("sweep", "pe4x").assert_error("no such sweep", "did you mean pe_4x?")
