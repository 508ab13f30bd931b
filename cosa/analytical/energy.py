"""Energy of one vector access and of one MAC: as the architecture states it, else estimated from widths and sizes.

The estimator is the public built-in table of Timeloop, in picojoules:

* SRAM: with W = word bits x block words x cluster size, H = words / block words rounded up and KB = W x H / 8192, a
  vector of one instance costs (1 + (KB - 1/2) x 5 / 99.5) x W / 16 / cluster size.
* DRAM: 200 x W / 16 a vector, W = word bits x block words.
* MAC: (word bits / 16)^2.

Wires, routers, adders and address generators cost nothing there.
"""

from __future__ import annotations

from cosa.model.arch import Architecture


def sram_energy_pj(capacity_words: int, word_bits: int, block_words: int, cluster_size: int = 1) -> float:
    """Energy of one vector access of an SRAM of so many words."""
    width_bits = word_bits * block_words * cluster_size
    rows = -(-capacity_words // block_words)
    kilobytes = width_bits * rows / 8192
    return (1 + (kilobytes - 0.5) * 5 / 99.5) * width_bits / 16 / cluster_size


def dram_energy_pj(word_bits: int, block_words: int) -> float:
    """Energy of one vector access of a DRAM."""
    return 200 * (word_bits * block_words) / 16


def mac_energy_pj(architecture: Architecture) -> float:
    """Energy of one multiply-accumulate."""
    mac = architecture.mac
    return mac.energy_pj if mac.energy_pj is not None else (mac.word_bits / 16) ** 2


def vector_access_energy_pj(architecture: Architecture, level: int) -> float:
    """Energy of one access of a level: a vector of its `block_words`, read or written; 0 where nothing is kept."""
    entry = architecture.levels[level]
    if not entry.could_keep:
        return 0.0
    if entry.vector_access_energy_pj is not None:
        return entry.vector_access_energy_pj
    if architecture.is_dram(level) or entry.capacity_words is None:
        return dram_energy_pj(entry.word_bits, entry.block_words)
    return sram_energy_pj(entry.capacity_words, entry.word_bits, entry.block_words, entry.cluster_size)


def clusters_used(architecture: Architecture, level: int, instances_used: int) -> int:
    """Physical arrays in use at a level."""
    return min(instances_used, architecture.instances(level) // architecture.levels[level].cluster_size)


def vectors(words: int, block_words: int) -> int:
    """Vector accesses for so many scalar ones."""
    return -(-words // block_words)
