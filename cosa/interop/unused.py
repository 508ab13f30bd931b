"""Keys of Timeloop's files that carry no meaning here, by the place where they may stand.

A key that is used nowhere and stands in none of these lists is an error, unless the user names it
(``--ignore-unknown``). `NEUTRAL` are keys whose usual values change nothing here: any other value is refused where it
would have to be counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

FILE = (
    "variables",
    "globals",
    "compound_components",
    "components",
    "primitive_components",
    "ERT",
    "ART",
    "ERT_summary",
    "ART_summary",
    "model",
    "include",
    "environment_variables",
    "accelergy_config",
    "version",
    "dumped_by_timeloop_front_end",
    "sparse_optimizations",
    "energy_reference_table",
    "area_reference_table",
    "architecture_description",
    "verbose_level",
)
"""Energy tables and their components, settings of the front end and of its search."""

MAPSPACE = ("template", "version", "name")

TREE_NODE = ("required_actions", "enabled", "power_gated_at", "class")

COMPONENT = ("required_actions", "enabled", "area_scale", "energy_scale", "power_gated_at", "network", "ERT", "ART")

NODE = (
    "required_actions",
    "area_scale",
    "energy_scale",
    "power_gated_at",
    "sparse_optimizations",
    "component_modeling",
    "ERT",
    "ART",
    "area",
    "energy",
    "version",
    "network",
)

SHAPE = ("version", "ranks")

PROBLEM = ("densities", "commonDensity", "name", "notes", "description")

INSTANCE = ("densities", "commonDensity", "H", "W", "Hpad", "Wpad", "Hpadding", "Wpadding")
"""Sizes of the input and its padding, which some files keep beside the bounds that follow from them."""

ATTRIBUTES = (
    "num_ports",
    "num_banks",
    "n_banks",
    "nbanks",
    "n_ports",
    "nports",
    "n_rd_ports",
    "n_wr_ports",
    "n_rdwr_ports",
    "min_utilization",
    "metadata_block_size",
    "metadata_datawidth",
    "metadata_word_bits",
    "metadata_storage_width",
    "metadata_storage_depth",
    "allow_overbooking",
    "addr_gen_energy",
    "addr_gen_bits",
    "cluster_area",
    "storage_area",
    "rw_bandwidth",
    "per_dataspace_bandwidth_consumption_scale",
    "reduction_supported",
    "network_read",
    "network_fill",
    "network_drain",
    "network_update",
    "network_type",
    "router_energy",
    "wire_energy",
    "energy_per_hop",
    "adder_energy",
    "tile_width",
    "fill_latency",
    "drain_latency",
    "read_latency",
    "update_fifo_depth",
    "power_gating",
    "has_power_gating",
    "power_gated_at",
    "type",
    "latency",
    "operand_network",
    "result_network",
    "concordant_compressed_tile_traversal",
    "default_md_block_size",
    "version",
    "adder_width",
    "data_width_a",
    "width_a",
    "width_b",
)

CONSTRAINT = (
    "max",
    "skew",
    "no_reuse",
    "no_temporal_reuse",
    "no_coalesce",
    "no_link_transfer",
    "no_multicast",
    "no_reduction",
    "no_multicast_no_reduction",
    "no_iteration_over_dataspaces",
    "must_iterate_over_dataspaces",
    "maximize_dims",
    "maximize_dims_capacity",
    "rmw_first_update",
    "rmw_on_first_writeback",
    "passthrough_on_first_writeback",
    "default_max_factor",
    "remainders",
    "tile_shape_constraint",
    "max_overbooked_proportion",
    "allow_overbooking",
    "note",
    "notes",
    "version",
)

# What each of them says where it changes nothing; all other values would change what Timeloop counts or allows.
NEUTRAL: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "sparse_optimizations": ({"targets": []},),
        "min_utilization": (0,),
        "allow_overbooking": (False,),
        "reduction_supported": (True, "true", "True", 1),
        "per_dataspace_bandwidth_consumption_scale": (1,),
        "max_overbooked_proportion": (0,),
        "skew": (),
        "no_reuse": (False,),
        "no_temporal_reuse": (False,),
        "no_coalesce": (False,),
        "no_link_transfer": (False,),
        "no_multicast": (False,),
        "no_reduction": (False,),
        "no_multicast_no_reduction": (False,),
        "no_iteration_over_dataspaces": (),
        "must_iterate_over_dataspaces": (),
        "maximize_dims": (),
        "maximize_dims_capacity": (),
        "rmw_first_update": (False,),
        "rmw_on_first_writeback": (False,),
        "passthrough_on_first_writeback": (False,),
        "default_max_factor": (),
        "remainders": (False,),
        "tile_shape_constraint": (),
        "max": (),
    }
)


def is_neutral(key: str, value: Any) -> bool:
    """Whether a key of that value changes nothing here: one that is never counted, or one without effect."""
    return key not in NEUTRAL or value in (None, "", [], {}) or value in NEUTRAL[key]
