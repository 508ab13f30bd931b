"""Whether an address mapping makes a plain stream slower than random access, and which one would not."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dram.config import DramConfig
from dram.system import READ, DramSystem

_REQUESTS = 2048
_MARGIN = 0.03
"""A stream that is slower by less than this share is not worth a word."""


@dataclass(frozen=True)
class MappingAdvice:
    """A stream of reads reaches ``stream_share`` of the peak bandwidth, random reads ``random_share``."""

    mapping: str
    stream_share: float
    random_share: float
    better_mapping: str | None
    better_share: float

    def __str__(self) -> str:
        text = (
            f"address mapping {self.mapping} makes a plain stream ({self.stream_share:.0%} of peak bandwidth) slower "
            f"than random access ({self.random_share:.0%})"
        )
        if self.better_mapping is not None:
            text += f"; with {self.better_mapping} the stream reaches {self.better_share:.0%}"
        return text


def _share(config: DramConfig, addresses: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    """Share of the peak bandwidth of one channel that reads of these addresses reach, submitted all at once."""
    system = DramSystem(config)
    system.submit_many(0, READ, addresses, np.arange(len(addresses)))
    last = 0
    while system.pending:
        last = max([last, *(cycle for _, cycle in system.advance(system.earliest_visible_cycle() or 0))])
    return len(addresses) * config.timing.burst_clocks / max(last, 1) / len(system.channels)


def candidates(config: DramConfig) -> list[str]:
    """Mappings that spread a stream: over channels, bank groups, banks or ranks first, then over columns."""
    o = config.organization
    counts = {"channel": o.channels, "bankgroup": o.bank_groups, "bank": 2, "rank": o.ranks}
    present = [name for name, count in counts.items() if count > 1]
    found = []
    for lowest in (["bankgroup"], ["bank"], [], ["bankgroup", "bank"]):
        low = [name for name in ("channel", *lowest) if name in present]
        if all(name in present for name in lowest):
            high = [name for name in ("rank", "bank", "bankgroup") if name in present and name not in low]
            found.append(":".join(["row", *high, "column", *reversed(low)]))
    return found


@lru_cache(maxsize=64)
def _measure(data: str) -> MappingAdvice | None:
    config = DramConfig.model_validate_json(data)
    size = config.request_bytes
    rng = np.random.default_rng(1)
    stream = np.arange(_REQUESTS, dtype=np.int64) * size
    blocks = config.capacity_bytes // size
    stream_share = _share(config, stream)
    random_share = _share(config, rng.integers(0, blocks, _REQUESTS) * size)
    if stream_share >= random_share * (1 - _MARGIN):
        return None
    best, best_share = None, stream_share
    for mapping in candidates(config):
        share = _share(config.with_changes(address_mapping=mapping), stream)
        if share > best_share * (1 + _MARGIN):
            best, best_share = mapping, share
    return MappingAdvice(config.address_mapping, stream_share, random_share, best, best_share)


def mapping_advice(config: DramConfig) -> MappingAdvice | None:
    """Advice if a plain stream is slower than random access with this mapping, else ``None``.

    Measured, not guessed: a stream and random reads of 2048 requests are run on one system of this configuration, and
    the stream on a few other mappings. Takes some milliseconds; a configuration is measured once a process.
    """
    return _measure(config.model_dump_json())
