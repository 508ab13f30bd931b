"""Timeloop files: the shared samples fact by fact, every spelling the rules name, and errors for everything else."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cosa.common.errors import CosaError, InputError
from cosa.interop.convert import Inputs, converted
from cosa.interop.facts import facts_of
from cosa.interop.nests import mapping_nest
from cosa.interop.places import Where
from cosa.interop.reference import first_difference, timeloop_files_cases
from cosa.interop.timeloop_files import parse_timeloop, timeloop_of
from cosa.interop.timeloop_yaml import TaggedDict, parse_yaml
from tests.cosa.interop_files import CONV, facts, read, refused

SAMPLES = Path(__file__).parent.parent / "data" / "timeloop_files"


def test_every_fact_of_every_sample() -> None:
    cases = dict(timeloop_files_cases(SAMPLES))
    assert len(cases) == 14
    assert {name: difference for name, difference in cases.items() if difference is not None} == {}


def test_a_wrong_fact_is_found() -> None:
    expected = json.loads((SAMPLES / "cosa_simba_arch.expected.json").read_text())
    found = facts_of(parse_timeloop((SAMPLES / "cosa_simba_arch.yaml").read_text(), "cosa_simba_arch.yaml"))
    for change in ("entries", "fanoutX", "word_bits", "name"):
        wrong = copy.deepcopy(expected)
        wrong["levels_outer_to_inner"][2][change] = 7
        assert "levels_outer_to_inner[2]" in str(first_difference(wrong, found))
    expected["levels_outer_to_inner"].pop()
    assert first_difference(expected, found) == "levels_outer_to_inner: expected 6 entries, found 7"


# --- YAML ---


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("N", "N"),
        ("y", "y"),
        ("NO", "NO"),
        ("on", "on"),
        ("010", 10),
        ("0x10", 16),
        ("1e-9", 1e-9),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("true", True),
        ("'8'", "8"),
        ("~", None),
    ],
)
def test_scalars_stay_what_is_written(text: str, value: Any) -> None:
    data = parse_yaml(f"a: {text}", Where("f.yaml"))
    assert data == {"a": value}
    assert type(data["a"]) is type(value)


def test_dimensions_named_like_truth_values_are_keys() -> None:
    text = """
problem:
  shape:
    name: odd
    dimensions: [N, Y, K]
    data_spaces:
    - {name: Weights, projection: [[[Y]], [[K]]]}
    - {name: Inputs, projection: [[[N]], [[Y]]]}
    - {name: Outputs, projection: [[[N]], [[K]]], read_write: yes}
  instance: {N: 2, Y: 3, K: 4}
"""
    assert facts(text)["bounds"] == {"N": 2, "Y": 3, "K": 4}


def test_merge_keys_and_anchors() -> None:
    text = "a: &x {p: 1, q: {r: 1, s: 2}}\nb: {<<: *x, p: 2}\nc: {<<<: *x, q: {r: 3}}"
    data = parse_yaml(text, Where("f.yaml"))
    assert data["b"] == {"p": 2, "q": {"r": 1, "s": 2}}
    assert data["c"] == {"p": 1, "q": {"r": 3, "s": 2}}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["empty"]),
        ("a: [", ["not valid YAML at line 1"]),
        ("problem:\n  word-bits: 1\n  word_bits: 2", ["line 3", "given twice"]),
        ("{{include_text('x.yaml')}}", ["Jinja"]),
        ("x: &a [*a]\nproblem: 1", ["nested too deeply"]),
        ("[1]: 2", ["a key must be text"]),
        ("architectur:\n  a: 1", ["architectur", "did you mean architecture?"]),
        ("variables: {}", ["nothing of Timeloop"]),
    ],
)
def test_files_that_are_not_timeloop(text: str, parts: list[str]) -> None:
    message = refused(text)
    for part in parts:
        assert part in message


# --- factors and permutations ---


def nest_of(directives: str, problem: str = CONV) -> list[tuple[str, str, int, str]]:
    file = read(problem + "mapping:\n" + directives)
    found = facts_of(file)
    part = found.get("mapping", found)
    return [
        (loop["level"], loop["dim"], loop["bound"], loop["type"])
        for loop in part["nest_outer_to_inner_without_unit_loops"]
    ]


@pytest.mark.parametrize(
    "factors",
    ["R=3 P=16", "R3 P16", "R=3,P=16", "R = 3, P = 16", "[R=3, P=16]", "[R3, P16]", "R3P16", "R=0 P=0", "P016 R=03"],
)
def test_spellings_of_factors(factors: str) -> None:
    loops = nest_of(
        f"- {{target: DRAM, type: temporal, factors: '{factors}', permutation: PR}}".replace("'[", "[").replace(
            "]'", "]"
        )
    )
    assert loops == [("DRAM", "R", 3, "temporal"), ("DRAM", "P", 16, "temporal")]


@pytest.mark.parametrize("permutation", ["PRK", "P R K", "P,R,K", "P, R, K", "[P, R, K]", "PRK SQCN", "PR"])
def test_spellings_of_permutations(permutation: str) -> None:
    shown = permutation if permutation.startswith("[") else f"'{permutation}'"
    loops = nest_of(f"- {{target: L, type: temporal, factors: R3 P16 K8, permutation: {shown}}}")
    assert [dim for _, dim, _, _ in loops] == ["K", "R", "P"]


def test_dimensions_left_out_of_a_permutation_go_outside() -> None:
    loops = nest_of("- {target: L, type: temporal, factors: R3 P16 C4 K8, permutation: K}")
    assert [dim for _, dim, _, _ in loops] == ["C", "P", "R", "K"]


@pytest.mark.parametrize(
    ("split", "kinds"), [("", "XXX"), (", split: 0", "YYY"), (", split: 2", "YXX"), (", split: 99", "XXX")]
)
def test_split(split: str, kinds: str) -> None:
    loops = nest_of(f"- {{target: L, type: spatial, factors: R3 P16 K8, permutation: PRKSQCN{split}}}")
    assert "".join(kind[-1] for _, _, _, kind in loops) == kinds


def test_residues_add_up_to_the_bound() -> None:
    text = """
mapping:
- {target: DRAM, type: temporal, factors: 'K=4', permutation: K}
- {target: L1, type: temporal, factors: 'K=3,2', permutation: K}
- {target: L0, type: temporal, factors: 'K=5,4 C=2', permutation: KC}
"""
    found = facts(text)
    # Three whole rounds of 3 x 5; in the last one 1 of 5 and then 4.
    assert found["problem_bounds"] == {"K": 3 * 15 + 5 + 4, "C": 2}
    assert found["nest_outer_to_inner_without_unit_loops"][1]["residue"] == 2
    assert found["directives"][2]["residues"] == {"K": 4}


@pytest.mark.parametrize(
    ("directive", "parts"),
    [
        ("{target: L, type: temporal, factors: 'R=x'}", ["factors", "not a factor", "R=x"]),
        ("{target: L, type: temporal, factors: 'R=3 R=1'}", ["dimension R is given twice"]),
        ("{target: L, type: temporal, factors: 'K=4,5'}", ["not a residue"]),
        ("{target: L, type: temporal, factors: 'Z=4'}", ["no such dimension", "Z"]),
        ("{target: L, type: temporal, factors: 'K<=4'}", ["a mapping needs exact factors"]),
        ("{target: L, type: temporal, permutation: PP}", ["dimension P is given twice"]),
        ("{target: L, type: temporal, permutation: 'P1'}", ["not a dimension"]),
        ("{target: L, type: tempral}", ["unknown type", "did you mean temporal?"]),
        ("{target: L, type: utilization, min: 0.5}", ["unknown type"]),
        ("{target: L, type: temporal, factor: 'R=3'}", ["factor", "did you mean factors?"]),
        ("{type: temporal}", ["no target"]),
        ("{target: L}", ["no type"]),
        ("{target: L, type: spatial, split: -1}", ["split", "not a whole number"]),
    ],
)
def test_wrong_directives_are_named(directive: str, parts: list[str]) -> None:
    message = refused(f"{CONV}mapping:\n- {directive}")
    for part in ("mapping[0]", *parts):
        assert part in message


def test_zero_needs_the_problem() -> None:
    assert "only the problem tells" in refused("mapping:\n- {target: L, type: temporal, factors: K=0}")


def test_a_directive_given_twice() -> None:
    two = "- {target: L, type: temporal, factors: K2}\n- {target: L, type: temporal, factors: K4}"
    assert "a second temporal directive for L" in refused(CONV + "mapping:\n" + two)


MAPPER_OUTPUT = """
mapping:
- {target: Regs, type: datatype, keep: [Weights], bypass: [Inputs, Outputs]}
- {target: DRAM, type: datatype, keep: [Weights, Inputs, Outputs], bypass: []}
- {target: Regs, type: temporal, factors: R3, permutation: R}
- {target: inter_PE_spatial, type: spatial, factors: K4, permutation: K, split: 0}
- {target: inter_PE_spatial, type: temporal, factors: K1, permutation: K}
- {target: DRAM, type: temporal, factors: K2, permutation: K}
"""


def test_what_the_mapper_writes_stands_innermost_first() -> None:
    loops = facts(MAPPER_OUTPUT)["nest_outer_to_inner_without_unit_loops"]
    assert [(loop["level"], loop["dim"]) for loop in loops] == [("DRAM", "K"), ("PE", "K"), ("Regs", "R")]


def test_the_architecture_gives_the_order() -> None:
    text = """
arch:
  arithmetic: {instances: 4, word_bits: 8}
  storage:
  - {name: A, entries: 1, instances: 4}
  - {name: B, entries: 1, instances: 1}
  - {name: Z, technology: DRAM, instances: 1}
mapping:
- {target: B, type: temporal, factors: P2}
- {target: 0, type: temporal, factors: P5}
- {target: Z, type: temporal, factors: P3}
"""
    loops = facts(text)["mapping"]["nest_outer_to_inner_without_unit_loops"]
    assert [(loop["level"], loop["bound"]) for loop in loops] == [("Z", 3), ("B", 2), ("A", 5)]
    assert "no such level" in refused(text.replace("target: B, type", "target: BB, type"))


# --- constraints ---


@pytest.mark.parametrize(
    ("wrap", "key"),
    [
        ("mapspace:\n  constraints:\n  - {D}", "mapspace.constraints"),
        ("mapspace:\n  constraints: rs\n  constraints_rs:\n  - {D}", "mapspace.constraints_rs"),
        ("mapspace:\n  targets:\n  - name: L\n    constraints:\n    - {E}", "mapspace.targets"),
        ("mapspace_constraints:\n  targets:\n  - {D}", "mapspace_constraints.targets"),
        ("mapspace_constraints:\n- {D}", "mapspace_constraints"),
        ("architecture-constraints:\n  version: 0.3\n  targets:\n  - {D}", "architecture_constraints.targets"),
        (
            "constraints:\n  targets:\n  - target: L\n    spatial: {factors: K4, permutation: KC, split: 1}",
            "constraints.targets",
        ),
    ],
)
def test_places_of_constraints(wrap: str, key: str) -> None:
    direct = "{target: L, type: spatial, factors: K4, permutation: KC, split: 1}"
    inner = "{type: spatial, attributes: {factors: K4, permutation: KC, split: 1}}"
    found = facts(wrap.replace("{D}", direct).replace("{E}", inner))
    assert found["kind"] == "constraints"
    assert found["key"] == key
    (constraint,) = found["constraints"]
    assert constraint["target"] == "L"
    assert (constraint["factors"], constraint["on_X"], constraint["on_Y"]) == ({"K": 4}, ["K"], ["C"])


def test_constraints_beside_a_problem() -> None:
    text = CONV + "mapspace:\n  constraints:\n  - {target: L, type: temporal, factors: K0 C16 P<=4, permutation: K_C}"
    (constraint,) = facts(text)["constraints"]
    assert constraint["factors"] == {"K": 8, "C": 16}
    assert constraint["ignored_factors"] == {"C": 16}
    assert constraint["max_factors"] == {"P": 4}
    assert constraint["free_dims"] == ["R", "S", "P", "Q", "N"]
    assert constraint["permutation_inner_to_outer"] == ["K", "_", "C"]


@pytest.mark.parametrize("kind", ["datatype", "dataspace", "bypass", "bypassing"])
def test_names_of_bypass(kind: str) -> None:
    (found,) = facts(f"mapspace:\n  constraints:\n  - {{target: L, type: {kind}, keep: [A], bypass: []}}")[
        "constraints"
    ]
    assert (found["type"], found["keep"], found["bypass"]) == ("bypass", ["A"], [])


# --- printed nests ---


def test_lines_of_a_printed_nest_that_are_none() -> None:
    text = (SAMPLES / "printed_nest.map.txt").read_text()
    with pytest.raises(InputError, match="line 3 is neither a level nor a loop"):
        parse_timeloop(text.replace("| for Q in [0:28)", "| for Q of 28"), "n.map.txt")


def test_archives_need_the_shape_they_count_in() -> None:
    text = (SAMPLES / "archived_nest.map+stats.xml").read_text()
    shorter = re.sub(r"<item><first>6.*?</item>", "", text)
    with pytest.raises(InputError, match="another number of dimensions"):
        parse_timeloop(shorter, "n.xml")
    with pytest.raises(InputError, match="loops over P do not multiply up"):
        parse_timeloop(text.replace("<second>7</second>", "<second>9</second>"), "n.xml")
    with pytest.raises(InputError, match="a bound of the problem that is no number"):
        parse_timeloop(text.replace("<second>7</second>", "<second>seven</second>"), "n.xml")
    with pytest.raises(InputError, match="entities"):
        parse_timeloop('<!DOCTYPE a [<!ENTITY x "y">]><a/>', "n.xml")


# --- whatever else stands in a file ---

ODD: list[Any] = [None, -1, 0, 1.5, "x", "K=", "", [], {}, True, 2**70, ["a", {"b": 1}], "1/0", "PP", "name[3..1]"]


def clone(value: Any) -> Any:
    if isinstance(value, dict):
        result = TaggedDict({key: clone(inner) for key, inner in value.items()})
        result.tag = getattr(value, "tag", "")
        return result
    return [clone(inner) for inner in value] if isinstance(value, list) else value


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.yaml")))
def test_odd_values_anywhere_end_in_one_line(name: str) -> None:
    data = parse_yaml((SAMPLES / name).read_text(), Where(name))
    chance = random.Random(name)
    for path in places(data):
        for odd in chance.sample(ODD, 4):
            changed = clone(data)
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = clone(odd)
            try:
                file = timeloop_of(changed, Where(name))
                facts_of(file)
                converted(Inputs(timeloop=file), chance.choice(["layer", "architecture", "schedule"]))
            except CosaError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.[yxt]*")))
def test_broken_text_ends_in_one_line(name: str) -> None:
    text = (SAMPLES / name).read_text()
    chance = random.Random(name)
    for _ in range(60):
        at, length = chance.randrange(len(text)), chance.randrange(12)
        broken = (
            text[:at]
            + chance.choice(["", "[", "]", "{", ":", "'", "\n", "\t", "0", "<", "&a ", "!x "])
            + text[at + length :]
        )
        try:
            facts_of(parse_timeloop(broken, name))
        except CosaError as error:
            assert "\n" not in str(error)


def test_a_mapping_that_keeps_only_what_it_names() -> None:
    mapping = read("mapping:\n- {target: L, type: bypass, keep: [Weights]}\n- {target: L, type: temporal}").mapping
    assert mapping is not None
    assert mapping_nest(mapping, "f.yaml").levels[0].bypasses == ()
