"""Lines of request traces: whose forms are read, and what a request of each is.

=============================  =====================================================================================
``LD address``                 load; ``ST address``: store (Ramulator 2)
``R address [cycle]``          read in a DRAM clock or later; ``W``: write
``R 0,0,1,2,100,4``            an address vector (Ramulator 2): one number for each level of the device
``address READ [cycle]``       as DRAMsim3 has it; ``address R`` as Ramulator 1; ``IFETCH``: DRAMSim2's ``mase``
``address P_MEM_RD [cycle]``   DRAMSim2's ``k6``
``31: [(64)] read address``    DRAMSys (``.stl``): cycle, bytes of the request, direction, address, data (not used)
``cycle,op,addr``              CSV, by its header (others are ignored)
=============================  =====================================================================================
"""

import re
from collections.abc import Callable

from dram.address_map import FIELDS
from dram.config import DramConfig

Request = tuple[int, int, int]
"""Cycle, direction (0 read, 1 write), byte address."""

FORMS = (
    "LD address, ST address, R|W address [cycle], R|W channel,rank,...,column, address READ|WRITE|R|W [cycle], "
    "address P_MEM_RD|P_MEM_WR cycle (k6), cycle: read|write address (.stl)"
)

_OPS = {"R": 0, "READ": 0, "LD": 0, "LOAD": 0, "W": 1, "WRITE": 1, "ST": 1, "STORE": 1}
# DRAMSim2 takes a locked write for a read.
_DRAMSIM2 = {"IFETCH": 0, "P_FETCH": 0, "P_MEM_RD": 0, "P_LOCK_RD": 0, "P_LOCK_WR": 0, "P_MEM_WR": 1, "BOFF": 1}
_STL = re.compile(r"(\d+):\s*(?:\((\d+)\)\s*)?(read|write)\s+(\S+)(?:\s+\S+)?", re.IGNORECASE)
_HEX = re.compile(r"(0[xX])?[0-9a-fA-F]+")
_ADDRESSES = 1 << 62


class LineError(ValueError):
    """What is wrong with a line, and what would be right."""

    def __init__(self, message: str, allowed: str = FORMS) -> None:
        super().__init__(message)
        self.allowed = allowed


class LineReader:
    """Reads the lines of one trace, for addresses that go to one device.

    In a file that has hexadecimal addresses without 0x, one of digits alone could be of either kind, so the two are
    refused together.
    """

    def __init__(self, config: DramConfig | None = None) -> None:
        self._config = config
        self._columns: tuple[int, int, int] | None = None
        self._read: Callable[[str], Request] = self._text
        self._kinds: dict[bool, str] = {}  # an address of letters and digits (True), or of digits alone

    def header(self, line: str) -> bool:
        """Whether the first line is the header of a CSV file, by which the others are read then.

        Raises
        ------
        LineError: a column is missing.
        """
        if "," not in line or line.split()[0].upper() in _OPS:
            return False
        names = [name.strip() for name in line.split(",")]
        for name in ("op", "addr"):
            if name not in names:
                raise LineError(f"no column {name}", "a header cycle,op,addr; or " + FORMS)
        self._columns = (names.index("cycle") if "cycle" in names else -1, names.index("op"), names.index("addr"))
        self._read = self._csv
        return True

    def request(self, line: str) -> Request:
        """The request of a line.

        Raises
        ------
        LineError: it is none.
        """
        try:
            return self._read(line)
        except LineError:
            raise
        except (ValueError, IndexError):
            raise LineError("not a request") from None

    def _text(self, line: str) -> Request:
        parts = line.split()
        if parts[0][:1].isdigit() and ":" in line:
            return self._stl(line)
        words = [part.upper() for part in parts[:2]]
        first = words[0] in _OPS
        if not first and words[1] not in _OPS and words[1] not in _DRAMSIM2:
            raise LineError("unknown direction")
        if len(parts) > 3:
            raise LineError("too many fields")
        cycle = _cycle(parts[2]) if len(parts) == 3 else 0
        if first:
            return cycle, _OPS[words[0]], self._vector(parts[1]) if "," in parts[1] else self._address(parts[1])
        if words[1] in _DRAMSIM2:
            return cycle, _DRAMSIM2[words[1]], hexadecimal(parts[0])
        return cycle, _OPS[words[1]], self._address(parts[0])

    def _csv(self, line: str) -> Request:
        assert self._columns is not None
        parts = [part.strip() for part in line.split(",")]
        cycle, op, address = self._columns
        if parts[op].upper() not in _OPS:
            raise LineError("unknown direction", ", ".join(_OPS))
        return _cycle(parts[cycle]) if cycle >= 0 else 0, _OPS[parts[op].upper()], self._address(parts[address])

    def _stl(self, line: str) -> Request:
        found = _STL.fullmatch(line)
        if found is None:
            raise LineError("not a request of DRAMSys", "cycle: [(bytes)] read|write address")
        cycle, size, word, address = found.groups()
        if size is not None and self._config is not None and int(size) != self._config.request_bytes:
            whole = f"{self._config.request_bytes} bytes, one burst of the device"
            raise LineError(f"a request of {size} bytes", whole)
        return _cycle(cycle), _OPS[word.upper()], hexadecimal(address)

    def _vector(self, text: str) -> int:
        """Address of an address vector: its levels as Ramulator lists them, the column counted in bursts."""
        if self._config is None:
            raise LineError("an address vector needs a device")
        place, grouped = self._config.address_map(), self._config.organization.bank_groups > 1
        names = [name for name in FIELDS if grouped or name != "bankgroup"]
        cells = text.split(",")
        if len(cells) != len(names):
            levels = f"{len(names)} levels of this device: {','.join(names)}; a byte address stands alone"
            raise LineError(f"an address vector of {len(cells)} levels", levels)
        values = {name: _cycle(cell, name) for name, cell in zip(names, cells, strict=True)}
        for name, value in values.items():
            if value > place.masks[name]:
                raise LineError(f"{name} {value} in an address vector", f"0 to {place.masks[name]}")
        return place.encode(**values)

    def _address(self, text: str) -> int:
        if text[:2] in ("0x", "0X"):
            return hexadecimal(text)
        plain = text.isascii() and text.isdigit()
        if len(text.lstrip("0")) > 1 or not plain:  # a single digit is the same number in both
            other = self._kinds.get(plain)
            if other is not None:
                raise LineError(
                    f"{text!r} may be decimal or hexadecimal beside {other!r}"
                    if plain
                    else f"hexadecimal without 0x beside {other!r}, which may be decimal or hexadecimal",
                    "0x before all hexadecimal addresses",
                )
            self._kinds.setdefault(not plain, text)
        return _in_range(int(text)) if plain else hexadecimal(text)


def hexadecimal(text: str) -> int:
    """A hexadecimal address, with or without 0x."""
    if not _HEX.fullmatch(text):
        raise LineError(f"not an address: {text[:40]!r}", "hexadecimal (0x1f40) or decimal (8000)")
    return _in_range(int(text, 16))


def _in_range(address: int) -> int:
    if address >= _ADDRESSES:
        raise LineError("address out of range", "below 2^62")
    return address


def _cycle(text: str, what: str = "cycle") -> int:
    if not (text.isascii() and text.isdigit()) or len(text.lstrip("0")) > 18:
        raise LineError(f"{what} is not a whole number from 0", "0 to 10^18 - 1")
    return int(text)
