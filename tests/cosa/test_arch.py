"""Architectures: the packaged ones, what is refused and how it is said, the content hash."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cosa.common.errors import InputError
from cosa.model.arch import Architecture, architecture_names, load_architecture
from cosa.model.noc import parse_mesh

Data = dict[str, Any]
LARGEST = 2**31


@pytest.fixture
def data(simba: Architecture) -> Data:
    return simba.model_dump(mode="json")


def change(data: Data, path: tuple[str | int, ...], value: Any) -> Data:
    """A copy with one field changed; `...` leaves it out."""
    result: Any = copy.deepcopy(data)
    inner = result
    for part in path[:-1]:
        inner = inner[part]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return dict(result)


def dotted(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


@pytest.mark.parametrize("name", architecture_names())
def test_packaged_architectures_load_under_their_own_name(name: str) -> None:
    assert load_architecture(name).name == name


def test_the_packaged_set() -> None:
    simulated = ["cosa2021", "simba_4x4", "simba_4x4_wide", "simba_8x8", "simba_8x_gbuf", "simba_paper"]
    others = ["eyeriss_like", "gpu_k80", "tpu_128x128"]
    assert architecture_names() == sorted([*simulated, *others])
    assert [name for name in architecture_names() if load_architecture(name).noc] == simulated


@pytest.mark.parametrize(
    ("name", "macs", "mesh"), [("simba_4x4", 1024, "4x4"), ("cosa2021", 1024, "4x4"), ("simba_8x8", 4096, "8x8")]
)
def test_size(name: str, macs: int, mesh: str) -> None:
    architecture = load_architecture(name)
    assert (architecture.macs, architecture.noc.mesh) == (macs, mesh)


@pytest.mark.parametrize("ending", ["json", "yaml"])
@pytest.mark.parametrize("name", ["simba_4x4", "simba_4x4_wide"])
def test_a_file_gives_back_the_architecture(tmp_path: Path, name: str, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    architecture = load_architecture(name)
    architecture.to_file(path)
    assert load_architecture(path) == architecture
    assert load_architecture(str(path)).content_hash == architecture.content_hash


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


OTHER: dict[str, list[Any]] = {
    # For each field by name, other values of which at least one is valid in its place.
    "name": ["other"],
    "keeps": [],
    "clock_ghz": [1.5],
    "limits": [[{"name": "PEs at once", "over": [{"level": "GlobalBuffer"}], "most": 12}]],
    "mesh": ["4x3"],
    "device": ["other"],
    "policy": ["other"],
    "mapping": ["other"],
    "clocks_per_core_cycle": ["3/2"],
    "side": ["east"],
    "router": [],
    "adder_words_per_cycle": [2],
    "chunk_packets": [3],
    "partial_packets": ["full"],
    "dram_packet": ["holds_path"],
    "send_engine": ["shared"],
    "store_waits_for": ["all_pes"],
    "finished_outputs": ["partial_sum_width"],
    "compute_starts": ["first_word"],
    "reduction": ["tree"],
    "placement": ["transposed", "row_major"],
    "weights_refetch": ["published"],
    "flit_bits": [128],
    "fifo_flits": [8],
    "packet_payload_flits": [3],
    "multicast_reservation_flits": [6],
    "extra_rows": [2],
    "technology": ["DRAM", "SRAM"],
    "vector_access_energy_pj": [0.0, 1.5],
    "energy_pj": [0.0, 1.5],
    "read_bandwidth_words_per_cycle": [3.5],
    "write_bandwidth_words_per_cycle": [3.5],
}
FIXED = {"kind", "schema_version"}


def test_the_hash_changes_with_every_field_that_can_change_a_result(data: Data) -> None:
    seen = {Architecture.from_data(data).content_hash}
    tried = 0
    for path, value in leaves(data):
        key = next(part for part in reversed(path) if isinstance(part, str))
        if path[0] in (*FIXED, "description") or path == ("name",):
            continue
        candidates = list(OTHER.get(key, []))
        if isinstance(value, bool):
            candidates = [not value]
        elif key in ("capacity_words", "fanout", "x", "y", "channels", "ranks") or isinstance(value, int):
            candidates = candidates or [2, 1, 3]
        elif isinstance(value, float):
            candidates = candidates or [value + 0.5]
        valid = []
        for candidate in candidates:
            if candidate == value:
                continue
            try:
                valid.append(Architecture.from_data(change(data, path, candidate)))
            except InputError:
                continue
        if not valid:
            # Fields that cannot change alone: what a level keeps, a port's place, what a level's position fixes.
            assert key in {"keeps", "may_keep", "router", "side", "capacity_words", "fanout", "cluster_size"}, path
            continue
        tried += 1
        for architecture in valid:
            assert architecture.content_hash not in seen, (path, value)
        seen |= {architecture.content_hash for architecture in valid}
    assert tried > 40


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("levels", 2, "keeps"), ["weights", "inputs"]),
        (("levels", 4, "keeps"), ["outputs"]),
        (("levels", 1, "fanout"), {"x": 4, "y": 2}),
        (("noc", "global_buffer_ports"), [{"router": [0, -1]}]),
        (("noc", "dram_ports"), [{"router": [-1, -1], "side": "east"}]),
        (("levels", 5, "read_bandwidth_words_per_cycle"), None),
    ],
)
def test_the_hash_changes_with_places_too(data: Data, path: tuple[str | int, ...], value: Any) -> None:
    assert Architecture.from_data(change(data, path, value)).content_hash != Architecture.from_data(data).content_hash


def test_the_hash_does_not_change_with_names_of_the_whole_or_the_way_of_writing(data: Data) -> None:
    plain = Architecture.from_data(data).content_hash
    assert Architecture.from_data(data | {"name": "other", "description": "long"}).content_hash == plain
    assert Architecture.from_data(dict(reversed(data.items()))).content_hash == plain
    assert Architecture.from_data(data | {"clock_ghz": 1}).content_hash == plain
    defaults = {key: value for key, value in data.items() if key not in ("shared_halves", "schema_version", "kind")}
    assert Architecture.from_data(defaults).content_hash == plain


def test_the_hash_is_the_same_tomorrow(simba: Architecture) -> None:
    code = "import cosa; print(cosa.load_architecture('simba_4x4').content_hash)"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {simba.content_hash + "\n"}


REFUSED: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("levels", 3, "capacity_words"), "4096", f"a whole number from 0 to {LARGEST} or null"),
    (("levels", 3, "capacity_words"), True, f"a whole number from 0 to {LARGEST} or null"),
    (("levels", 3, "capacity_words"), 1.5, f"a whole number from 0 to {LARGEST} or null"),
    (("levels", 3, "capacity_words"), 0, "a whole number >= 1, or `keeps: []`"),
    (("levels", 3, "capacity_words"), -4, f"a whole number from 0 to {LARGEST} or null"),
    (("levels", 3, "capacity_words"), LARGEST + 1, f"a whole number from 0 to {LARGEST} or null"),
    (("levels", 3, "capacity_words"), None, "a whole number >= 1"),
    (("levels", 3, "fanout"), "meshh", "'mesh'; did you mean mesh?"),
    (("levels", 3, "fanout"), 0, "a mapping with the keys x, y"),
    (("levels", 3, "fanout"), None, "a whole number"),
    (("levels", 3, "buffers"), 3, "1 or 2"),
    (("levels", 3, "buffers"), True, "1 or 2"),
    (("levels", 3, "keeps"), ["inputs", "inputs"], "each once"),
    (("levels", 3, "keeps"), "inputs", "a list"),
    (("levels", 5, "keeps"), ["inputs", "outputs"], "weights, inputs, outputs"),
    (("levels", 3), 5, "a mapping with the keys name, keeps"),
    (("levels",), [], "a list of 1 to 16 entries"),
    (("levels",), {}, "a list of 1 to 16 entries"),
    (("levels", 0, "read_bandwidth_words_per_cycle"), 0.0, "a number > 0 or null"),
    (("levels", 0, "word_bits"), 0, "a whole number from 1 to 1024"),
    (("levels", 0, "cluster_size"), 3, "a divisor of its 1024 instances"),
    (("levels", 0, "technology"), "sram", "'SRAM' or 'DRAM' or null"),
    (("levels", 0, "vector_access_energy_pj"), -1.0, "a number from 0"),
    (("mac", "energy_pj"), -1.0, "a number from 0"),
    (("levels", 5, "read_bandwidth_words_per_cycle"), float("inf"), "a number > 0 or null"),
    (("clock_ghz",), 0.0, "a number > 0 and <= 100"),
    (("clock_ghz",), float("nan"), "a number > 0 and <= 100"),
    (("clock_ghz",), "1", "a number > 0 and <= 100"),
    (("noc", "mesh"), "0x4", "columns x rows, each from 1 to 64"),
    (("noc", "mesh"), "4", "columns x rows"),
    (("noc", "mesh"), "axb", "columns x rows"),
    (("noc", "mesh"), "4x65", "columns x rows"),
    (("noc", "mesh"), "04x4", "columns x rows"),
    (("noc", "mesh"), 4, "text"),
    (("noc", "flit_bits"), 48, "32, 64, 128, 256 or 512"),
    (("noc", "flit_bits"), 64.0, "32, 64, 128, 256 or 512"),
    (("noc", "fifo_flits"), 3, ">= 5"),
    (("noc", "multicast_reservation_flits"), 4, ">= 5"),
    (("noc", "dram_ports", 0, "router"), [99, 0], "column from -4 to 3, row from -5 to 4"),
    (("noc", "dram_ports", 0, "side"), "north", "local, south, east"),
    (("noc", "dram_ports", 0, "side"), "up", "'south'"),
    (("noc", "global_buffer_ports", 0, "side"), "south", "local"),
    (("noc", "global_buffer_ports"), [], "a list of at least 1"),
    (("dram", "clocks_per_core_cycle"), "0/1", "real"),
    (("dram", "device"), "", "not empty"),
    (("machine", "halo_reuse"), 1, "true or false"),
    (("machine",), None, "a mapping with the keys reads_in_flight"),
]


@pytest.mark.parametrize(("path", "value", "allowed"), REFUSED, ids=lambda part: str(part)[:40])
def test_refused_with_path_value_and_what_is_allowed(
    data: Data, path: tuple[str | int, ...], value: Any, allowed: str
) -> None:
    with pytest.raises(InputError) as caught:
        Architecture.from_data(change(data, path, value), source="arch.yaml")
    text = str(caught.value)
    assert text.startswith(f"arch.yaml: {dotted(path)}: "), text
    assert f"(found {value!r})"[:60] in text
    assert allowed in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("path", "value", "where", "says"),
    [
        (("levels", 3, "fanout"), {"x": 0}, "levels[3].fanout.x", f"from 1 to {LARGEST}"),
        (("levels", 3, "fanout"), {"z": 1}, "levels[3].fanout.z", "unknown key; allowed: x, y"),
        (("levels", 3, "keeps"), ["weight"], "levels[3].keeps[0]", "did you mean weights?"),
        (("levels", 3, "nam"), "x", "levels[3].nam", "did you mean name?"),
        (("levels", 3, "name"), ..., "levels[3].name", "missing"),
        (("levels", 3, "name"), "DRAM", "levels[5].name", "level 3 has the same name"),
        (("noc", "dram_ports", 0, "router"), [1], "noc.dram_ports[0].router[1]", "missing"),
        (("levels", 5, "fanout"), "mesh", "levels", "levels 4 and 5 have it"),
        (("levels", 4, "fanout"), 1, "levels", "none has it"),
        (("levels", 1, "fanout"), {"x": 2**20, "y": 2**20}, "levels", "the MAC units, is too large"),
        (("noc",), ..., "levels[4].fanout", "no noc block to take the mesh from"),
    ],
    ids=lambda part: str(part)[:40],
)
def test_refused_elsewhere(data: Data, path: tuple[str | int, ...], value: Any, where: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        Architecture.from_data(change(data, path, value))
    assert caught.value.path == where
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["0x4", "4", "axb", "", "4x", "4x4x4", "-1x4", "65x1", "9" * 5000 + "x4", "٤x4"])
def test_not_a_mesh(text: str) -> None:
    with pytest.raises(InputError, match="not a mesh"):
        parse_mesh(text)


def test_meshes() -> None:
    assert parse_mesh("4x4") == (4, 4)
    assert parse_mesh(" 8X2 ") == (8, 2)
    assert parse_mesh("64x1") == (64, 1)


def test_another_mesh(simba: Architecture) -> None:
    wide = simba.with_mesh("8x2")
    assert (wide.noc.pe_columns, wide.noc.pe_rows, wide.macs) == (8, 2, 1024)
    assert wide.content_hash != simba.content_hash
    assert simba.with_mesh("4x4") == simba


def test_unknown_names_and_files() -> None:
    with pytest.raises(InputError, match="did you mean simba_4x4") as caught:
        load_architecture("simba4x4")
    assert "cosa2021" in (caught.value.allowed or "")
    for name in ("", "a" * 5000):
        with pytest.raises(InputError, match="no such architecture"):
            load_architecture(name)
    with pytest.raises(InputError, match="no such file"):
        load_architecture("nowhere/simba.yaml")


def test_a_limit_on_a_level_that_is_not_there(data: Data) -> None:
    with pytest.raises(InputError) as caught:
        Architecture.from_data(data | {"limits": [{"name": "threads", "over": [{"level": "L2"}], "most": 8}]})
    assert caught.value.path == "limits[0].over[0].level"


def test_a_changed_copy_has_a_hash_of_its_own(simba: Architecture) -> None:
    before = simba.content_hash
    changed = simba.model_copy(update={"clock_ghz": 2.0})
    assert changed.content_hash != before
    assert simba.content_hash == before
    assert changed.model_copy(update={"clock_ghz": simba.clock_ghz}).content_hash == before
    assert changed != simba
    assert pickle.loads(pickle.dumps(simba)) == simba
