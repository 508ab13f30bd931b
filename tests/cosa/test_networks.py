"""Layer tables: rows as published, totals that add up."""

from __future__ import annotations

import csv
from importlib import resources
from math import prod

import pytest

from cosa.common.errors import InputError
from cosa.model.networks import FOUR_NETWORKS, load_network, network_names

SIZES = {
    # name: unique layers, occurrences, MACs of all occurrences (summed over the published rows with awk, not by us)
    "alexnet": (8, 8, 714188480),
    "deepbench": (76, 76, 90933413632),
    "deepbench_ocr_face": (9, 9, 433695744),
    "densenet161": (87, 161, 7727907072),
    "dlrm": (7, 8, 2011904),
    "resnet18": (12, 21, 29025173504),
    "resnet50": (24, 54, 4089184256),
    "resnext50_32x4d": (25, 54, 4230479872),
    "resnext50_32x4d_grouped": (25, 54, 4230479872),
    "vgg16": (12, 16, 15470264320),
}


def published(name: str) -> list[dict[str, str]]:
    table = (resources.files("cosa.model.networks") / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(table.splitlines()))


def test_all_tables_are_named_here() -> None:
    assert network_names() == sorted(SIZES)
    assert set(FOUR_NETWORKS) <= set(SIZES)


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name: str) -> None:
    network = load_network(name)
    assert (len(network.layers), sum(entry.count for entry in network.layers), network.macs) == SIZES[name]


@pytest.mark.parametrize("name", sorted(set(SIZES) - {"deepbench_ocr_face"}))
def test_macs_are_those_of_the_published_column(name: str) -> None:
    rows, network = published(name), load_network(name)
    assert [entry.layer.macs for entry in network.layers] == [int(row["macs"]) for row in rows]
    assert [entry.layer.name for entry in network.layers] == [row["layer"] for row in rows]
    assert network.macs == sum(int(row["macs"]) * int(row["count"]) for row in rows)


def test_the_grouped_form_has_the_same_work_and_true_tensors() -> None:
    flat, grouped = load_network("resnext50_32x4d"), load_network("resnext50_32x4d_grouped")
    assert grouped.macs == flat.macs
    changed = 0
    for before, after in zip(flat.layers, grouped.layers, strict=True):
        assert (before.layer.name, before.count) == (after.layer.name, after.count)
        if before.layer.R == 3:
            changed += 1
            assert after.layer.G == 32
            assert after.layer.K * 32 == before.layer.K
            assert after.layer.C == before.layer.C == after.layer.K
            assert after.layer.tensor_words("weights") == before.layer.tensor_words("weights")
            assert after.layer.tensor_words("outputs") == before.layer.tensor_words("outputs")
            assert after.layer.tensor_words("inputs") == 32 * before.layer.tensor_words("inputs")
        else:
            assert after.layer.bounds == before.layer.bounds
    assert changed == 7


def test_a_dilation_of_0_is_taken_as_1_with_a_note() -> None:
    rows = {row["layer"]: row for row in published("deepbench")}
    noted = 0
    for entry in load_network("deepbench").layers:
        for key in ("dilation_w", "dilation_h"):
            stated = int(rows[entry.layer.name][key])
            assert getattr(entry.layer, key) == max(1, stated)
            note = f"{key} is 0 in the published row; taken as 1"
            assert (note in entry.layer.notes) == (stated == 0)
            noted += stated == 0
    assert noted > 0


def test_the_view_of_deepbench_is_its_nine_ocr_and_face_rows() -> None:
    names = [entry.layer.name for entry in load_network("deepbench_ocr_face").layers]
    assert len(names) == 9
    assert all("OCR" in name or "Face" in name for name in names)
    whole = [entry.layer for entry in load_network("deepbench").layers]
    assert all(entry.layer in whole for entry in load_network("deepbench_ocr_face").layers)


@pytest.mark.parametrize("name", SIZES)
def test_layers_are_unique(name: str) -> None:
    layers = load_network(name).layers
    assert len({entry.layer.name for entry in layers}) == len(layers)
    shapes = {entry.layer.model_dump_json(exclude={"name", "notes"}) for entry in layers}
    assert len(shapes) == len(layers)


def test_find() -> None:
    entry = load_network("resnet50").find("input.8")
    assert (entry.layer.K, entry.layer.P, entry.count) == (64, 56, 3)
    assert prod(entry.layer.bounds.values()) == 115605504


def test_unknown_names_get_suggestions() -> None:
    with pytest.raises(InputError, match="did you mean resnet50") as caught:
        load_network("resnet5O")
    assert "vgg16" in (caught.value.allowed or "")
    with pytest.raises(InputError, match=r"did you mean input\.8\?"):
        load_network("resnet50").find("input8")
    with pytest.raises(InputError, match="no such network"):
        load_network("../networks/alexnet")
