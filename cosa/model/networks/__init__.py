"""Layer tables that travel with the package.

Rows stay as published (facts from the layer files of CoSA's repository, commit c4798a7). What the tables say, and what
they leave out, is in ``docs/reference/networks.md``.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources

from cosa.common.errors import InputError, nearest_of
from cosa.model.layer import Layer

_VIEWS = {"deepbench_ocr_face": "deepbench"}
"""Networks that are a part of a table: the nine OCR and face rows that CoSA's evaluation calls DeepBench."""

FOUR_NETWORKS = ("alexnet", "resnet50", "resnext50_32x4d", "deepbench_ocr_face")
"""The networks of CoSA's evaluation. Means run over the unique layers of a network, then over networks."""


@dataclass(frozen=True)
class NetworkLayer:
    """A unique layer and how often layers of these dimensions occur; `application` where the table names one."""

    layer: Layer
    count: int
    application: str | None = None


@dataclass(frozen=True)
class Network:
    """A named list of unique layers."""

    name: str
    layers: tuple[NetworkLayer, ...]

    @property
    def macs(self) -> int:
        """MACs of the whole network, every occurrence counted."""
        return sum(entry.layer.macs * entry.count for entry in self.layers)

    def find(self, layer_name: str) -> NetworkLayer:
        """A layer by name.

        Raises
        ------
        InputError: the network has no such layer.
        """
        names = [entry.layer.name for entry in self.layers]
        if layer_name not in names:
            raise InputError(
                f"network {self.name!r} has no such layer",
                path="layer",
                value=layer_name,
                allowed=", ".join(names),
                nearest=nearest_of(layer_name, names),
            )
        return self.layers[names.index(layer_name)]


def network_names() -> list[str]:
    """Names of all networks."""
    tables = [entry.name for entry in resources.files("cosa.model.networks").iterdir() if entry.name.endswith(".csv")]
    return sorted([name.removesuffix(".csv") for name in tables] + list(_VIEWS))


def load_network(name: str) -> Network:
    """A network by name.

    Raises
    ------
    InputError: no such network.
    """
    names = network_names()
    if name not in names:
        raise InputError(
            "no such network", path="network", value=name, allowed=", ".join(names), nearest=nearest_of(name, names)
        )
    table = resources.files("cosa.model.networks") / f"{_VIEWS.get(name, name)}.csv"
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    return Network(name, tuple(_entry(row) for row in rows if name not in _VIEWS or row["cosa_eval"] == "1"))


def _entry(row: dict[str, str]) -> NetworkLayer:
    numbers = {key: int(row[key]) for key in (*"RSPQCKN", "stride_w", "stride_h")} | {"G": int(row.get("G", "1"))}
    notes = []
    for key in ("dilation_w", "dilation_h"):
        numbers[key] = max(1, int(row[key]))
        if row[key] == "0":
            notes.append(f"{key} is 0 in the published row; taken as 1")
    layer = Layer.from_data({"name": row["layer"], "notes": notes, **numbers}, source=f"{row['network']}.csv")
    return NetworkLayer(layer, int(row["count"]), row.get("application"))
