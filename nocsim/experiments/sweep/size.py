"""What a chip has: the size of its buffers."""

from __future__ import annotations

from cosa.model.arch import Architecture


def on_chip_buffer_bytes(architecture: Architecture) -> int:
    """Bytes of all buffers on the chip: every instance of every level that is not DRAM, second sets included.

    A second set (`buffers: 2`) counts unless the architecture says that the two share the stated capacity.
    """
    bits = 0
    for number, level in enumerate(architecture.levels):
        if level.capacity_words is not None and not architecture.is_dram(number):
            sets = 1 if architecture.shared_halves else level.buffers
            bits += architecture.instances(number) * level.capacity_words * sets * level.word_bits
    return -(-bits // 8)
