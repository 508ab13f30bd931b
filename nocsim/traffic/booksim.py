"""BookSim 2's configuration files (``key = value;``) as a run of synthetic traffic.

Every key is known with the value that leaves nothing out here: most often BookSim's default. Another value of a key
that would change the result is refused, and so is the absence of one whose default is not modelled (a torus, 16 virtual
channels). The router is not BookSim's: its pipeline and allocators are those of the mesh here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cosa.common.errors import InputError, nearest_of
from cosa.common.file_kinds import another_kind
from cosa.common.files import read_text

KIND = "BookSim configuration"

# What is taken over, with BookSim's defaults.
_TAKEN: dict[str, Any] = {
    "topology": "torus",
    "k": 8,
    "n": 2,
    "routing_function": "none",
    "num_vcs": 16,
    "vc_buf_size": 8,
    "traffic": "uniform",
    "injection_rate": 0.1,
    "injection_rate_uses_flits": 0,
    "packet_size": 1,
    "seed": 0,
    "sim_type": "latency",
    "warmup_periods": 3,
    "sample_period": 1000,
    "max_samples": 10,
}

# What would change the result, by the values that do not; the first one is BookSim's default.
_FIXED: dict[str, tuple[str, ...]] = {
    "c": ("1",), "subnets": ("1",), "classes": ("1",), "link_failures": ("0",), "router": ("iq",), "noq": ("0",),
    "use_noc_latency": ("1", "0"), "xr": ("1",), "yr": ("1",), "channel_file": ("",),
    "output_delay": ("0",), "credit_delay": ("0",), "internal_speedup": ("1.0", "1"), "input_speedup": ("1",),
    "output_speedup": ("1",), "output_buffer_size": ("-1",), "speculative": ("0",), "buf_size": ("-1",),
    "buffer_policy": ("private",), "private_bufs": ("-1",), "wait_for_tail_credit": ("0",),
    "vc_busy_when_full": ("0",), "hold_switch_for_packet": ("0", "1"), "routing_delay": ("1",),
    "vc_alloc_delay": ("1",), "sw_alloc_delay": ("1",), "st_prepare_delay": ("0",), "st_final_delay": ("1",),
    "vc_allocator": ("islip",), "sw_allocator": ("islip",), "arb_type": ("round_robin",), "alloc_iters": ("1",),
    "priority": ("none",), "class_priority": ("0",), "injection_process": ("bernoulli",), "packet_size_rate": ("1",),
    "use_read_write": ("0",), "include_queuing": ("1",), "measure_stats": ("1",), "sim_count": ("1",),
    "network_file": ("",), "sim_power": ("0",),
}  # fmt: skip

# Output, thresholds of BookSim's own test of convergence, and what belongs to what is refused above.
_OTHERS = """
    x y perm_seed fail_seed in_ports out_ports latency_thres warmup_thres acc_warmup_thres stopping_thres
    acc_stopping_thres print_activity print_csv_results pair_stats deadlock_warn_timeout viewer_trace watch_file
    watch_flits watch_packets watch_transactions watch_out stats_out sent_packets_out power_output_file tech_file
    channel_width channel_sweep burst_alpha burst_beta burst_r1 batch_size batch_count max_outstanding_requests
    write_fraction read_request_size write_request_size read_reply_size write_reply_size read_request_begin_vc
    read_request_end_vc write_request_begin_vc write_request_end_vc read_reply_begin_vc read_reply_end_vc
    write_reply_begin_vc write_reply_end_vc read_request_subnet read_reply_subnet write_request_subnet
    write_reply_subnet spec_check_elig spec_check_cred spec_mask_by_reqs spec_sw_allocator
"""
_WITHOUT_EFFECT = frozenset(_OTHERS.split())

_KNOWN = (*_TAKEN, *_FIXED, *sorted(_WITHOUT_EFFECT))
_ROUTES = ("dor", "dim_order", "xy")
_PATTERNS = ("uniform", "transpose", "bitcomp", "bitrev", "shuffle", "hotspot({node})")
_ALONG_A_ROW = ("tornado", "neighbor")
"""BookSim moves along every dimension, the mesh here along the row: the same with one dimension only."""


def read_booksim(path: str | Path) -> tuple[dict[str, Any], list[str]]:
    """The options of `nocsim traffic` that a configuration stands for, by their names there, and notes.

    Raises
    ------
    InputError: a key is unknown, or its value not modelled; with the key and what is allowed.
    """
    source = str(path)
    text = read_text(path)
    wrong = another_kind(text, source, (KIND,), "a BookSim configuration")
    if wrong is not None:
        raise wrong
    given = _entries(text, source)
    for key, value in given.items():
        if key not in _KNOWN:
            nearest = nearest_of(key, _KNOWN)
            raise InputError("no such key", source=source, path=key, value=value, allowed="BookSim's", nearest=nearest)
        if key in _FIXED and value not in _FIXED[key]:
            allowed = " or ".join(_FIXED[key]) or "nothing"
            raise InputError("not modelled", source=source, path=key, value=value, allowed=allowed)
    return _Configuration(given, source).options()


def _entries(text: str, source: str) -> dict[str, str]:
    text = re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.DOTALL)
    text = re.sub(r"//.*", "", text)
    found: dict[str, str] = {}
    line = 1
    for statement in text.split(";"):
        row = line + statement[: len(statement) - len(statement.lstrip())].count("\n")
        line += statement.count("\n")
        if not statement.strip():
            continue
        match = re.fullmatch(r"\s*(\w+)\s*=\s*(.*?)\s*", statement, re.DOTALL)
        if match is None:
            shown = " ".join(statement.split())
            raise InputError("not an entry", source=f"{source}:{row}", value=shown, allowed="key = value;")
        key, value = match[1], match[2].strip("\"'")
        if "\n" in value:
            raise InputError("no semicolon at its end", source=f"{source}:{row}", path=key, allowed="key = value;")
        if key in found:
            raise InputError("given twice", source=f"{source}:{row}", path=key, value=value, allowed="once")
        found[key] = value
    return found


class _Configuration:
    """Entries of a file, each with the value that BookSim takes where it is not given."""

    def __init__(self, given: Mapping[str, str], source: str) -> None:
        self._given, self._source = given, source

    def options(self) -> tuple[dict[str, Any], list[str]]:
        """See `read_booksim`."""
        self._one_of("topology", ("mesh",))
        self._one_of("routing_function", _ROUTES)
        self._one_of("num_vcs", ("1",))
        self._one_of("sim_type", ("latency", "throughput"))
        size, dimensions = self._whole("k", 1), self._whole("n", 1)
        if dimensions > 2:
            raise self._error("n", "not modelled", "1 or 2 dimensions")
        flits = self._whole("packet_size", 1)
        rate = self._number("injection_rate")
        in_flits = self._whole("injection_rate_uses_flits", 0)
        if in_flits > 1:
            raise self._error("injection_rate_uses_flits", "not a switch", "0 or 1")
        load = rate if in_flits else rate * flits
        if not 0 < load <= 1:
            unit = "flits" if in_flits else f"packets of {flits} flits"
            raise self._error("injection_rate", f"{load:g} flits/node/cycle", f"more than 0, up to 1, in {unit}")
        period = self._whole("sample_period", 1)
        warmup = self._whole("warmup_periods", 0) * period
        options = {
            "mesh": f"{size}x{size if dimensions == 2 else 1}",
            "rate": load,
            "packet_flits": flits,
            "fifo_flits": self._whole("vc_buf_size", 1),
            "warmup_cycles": warmup,
            "cycles": warmup + self._whole("max_samples", 1) * period,
            "seed": self._whole("seed", 0),
            **self._pattern(dimensions),
        }
        notes = [
            f"rate {load:g} flits/node/cycle"
            + ("" if in_flits or flits == 1 else f": injection_rate counts packets, of {flits} flits"),
            f"vc_buf_size is the depth of the output FIFOs; {options['cycles']:,} cycles, {warmup:,} of them warm-up",
        ]
        if options["pattern"] == "uniform":
            notes.append("uniform goes to other nodes only, BookSim's to the node itself as well")
        unused = [key for key in self._given if key in _WITHOUT_EFFECT]
        if unused:
            notes.append(f"without effect here: {', '.join(unused)}")
        return options, notes

    def _pattern(self, dimensions: int) -> dict[str, Any]:
        text = self._value("traffic").replace(" ", "")
        hotspot = re.fullmatch(r"hotspot\(\{?(\d+)\}?(?:,\{?\d+\}?)?\)", text)
        if hotspot is not None:
            return {"pattern": "hotspot", "hot_node": int(hotspot[1]), "hot_share": 1.0}
        allowed = (*_PATTERNS, *(_ALONG_A_ROW if dimensions == 1 else ()))
        if text not in allowed:
            why = "moves along every dimension there, along the row here" if text in _ALONG_A_ROW else "not modelled"
            raise self._error("traffic", why, ", ".join(allowed))
        return {"pattern": text}

    def _value(self, key: str) -> str:
        return self._given.get(key, str(_TAKEN[key]))

    def _error(self, key: str, message: str, allowed: str) -> InputError:
        if key not in self._given:
            message += " (not given: BookSim's default)"
        return InputError(message, source=self._source, path=key, value=self._value(key), allowed=allowed)

    def _one_of(self, key: str, allowed: tuple[str, ...]) -> None:
        if self._value(key) not in allowed:
            raise self._error(key, "not modelled", ", ".join(allowed))

    def _whole(self, key: str, least: int) -> int:
        text = self._value(key)
        if not (text.isascii() and text.isdigit()) or not least <= int(text) < 1 << 31:
            raise self._error(key, "not a whole number in range", f"one number from {least}")
        return int(text)

    def _number(self, key: str) -> float:
        try:
            return float(self._value(key))
        except ValueError:
            raise self._error(key, "not a number", "one number") from None
