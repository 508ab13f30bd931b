"""Which bits of a byte address select channel, rank, bank group, bank, row and column."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

FIELDS = ("channel", "rank", "bankgroup", "bank", "row", "column")

#: The seven address schemes of DRAMSim2, most significant field first.
SCHEMES: Mapping[str, str] = {
    "scheme1": "channel:rank:row:column:bank",
    "scheme2": "channel:row:column:bank:rank",
    "scheme3": "channel:rank:bank:column:row",
    "scheme4": "channel:rank:bank:row:column",
    "scheme5": "channel:row:column:rank:bank",
    "scheme6": "channel:row:bank:rank:column",
    "scheme7": "row:column:rank:bank:channel",
}


def offset_bits_of(request_bytes: int) -> int:
    """Bits below all fields: the position inside one request."""
    return request_bytes.bit_length() - 1


def resolve_mapping(mapping: str) -> tuple[str, ...]:
    """Split ``row:rank:bank:column`` or the name of a scheme into fields, most significant first.

    Raises:
        ValueError: a field is unknown, given twice, or row, bank or column is missing.
    """
    fields = tuple(part.strip() for part in SCHEMES.get(mapping.strip(), mapping).split(":"))
    allowed = f"allowed: {', '.join(FIELDS)} joined by ':', or {', '.join(SCHEMES)}"
    for field in fields:
        if field not in FIELDS:
            near = difflib.get_close_matches(field, [*FIELDS, *SCHEMES], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"address mapping {mapping!r}: unknown field {field!r}{hint}; {allowed}")
        if fields.count(field) > 1:
            raise ValueError(f"address mapping {mapping!r}: field {field!r} stands twice; {allowed}")
    missing = [field for field in ("row", "bank", "column") if field not in fields]
    if missing:
        raise ValueError(f"address mapping {mapping!r}: field {missing[0]!r} is missing; {allowed}")
    return fields


@dataclass(frozen=True)
class AddressMap:
    """Shift and mask of every field; a field of one value has mask 0.

    Address bits above the highest field are ignored: addresses wrap at the capacity, as in DRAMSim2.
    """

    offset_bits: int
    shifts: Mapping[str, int]
    masks: Mapping[str, int]

    @classmethod
    def from_fields(cls, fields: tuple[str, ...], sizes: Mapping[str, int], offset_bits: int) -> "AddressMap":
        """Lay the fields (most significant first) one above the other.

        Raises:
            ValueError: a field with more than one value has no place in the mapping.
        """
        for name, size in sizes.items():
            if size > 1 and name not in fields:
                raise ValueError(f"address mapping {':'.join(fields)!r} has no field {name!r}, but there are {size}")
        shifts: dict[str, int] = dict.fromkeys(FIELDS, 0)
        masks: dict[str, int] = dict.fromkeys(FIELDS, 0)
        position = offset_bits
        for name in reversed(fields):
            shifts[name] = position
            masks[name] = sizes[name] - 1
            position += sizes[name].bit_length() - 1
        return cls(offset_bits, shifts, masks)

    def decode(self, address: int) -> dict[str, int]:
        """All fields of one byte address."""
        return {name: (address >> self.shifts[name]) & self.masks[name] for name in FIELDS}

    def encode(self, **values: int) -> int:
        """Byte address of the given fields; those not named are 0."""
        address = 0
        for name, value in values.items():
            if value & ~self.masks[name]:
                raise ValueError(f"{name} = {value} exceeds {self.masks[name]}")
            address |= value << self.shifts[name]
        return address
