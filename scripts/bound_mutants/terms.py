"""What a term of a bound is, and how it is falsified.

A term is a passage of the source with the part that is changed between `<<` and `>>`. What is done to it is told by its
kind; `alike` names the mutants that bound as truly and as tightly, or are weaker by intention, and says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_LOG = 0.26303440583379383
"""Log of 1.2 to the base 2."""


@dataclass(frozen=True)
class Term:
    """A passage of `file` with <<a part>> that mutants change.

    `kind`: ``amount`` (a factor or summand of words, cycles, pJ), ``log`` (the log of one), ``gate`` (a row
    `require(x <= ...)`: x is allowed always, or never), ``row`` (a statement: left out) or ``other`` (`instead` has the
    mutants, by what they do). `only`: of a kind's mutants those that are made.
    """

    file: str
    kind: str
    text: str
    instead: Mapping[str, str] = field(default_factory=dict)
    alike: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()

    @property
    def part(self) -> str:
        """What is changed."""
        return re.findall("<<(.*?)>>", self.text, re.DOTALL)[0]

    @property
    def source(self) -> str:
        """The passage as it stands in the file."""
        return self.text.replace("<<", "").replace(">>", "")

    def mutants(self) -> dict[str, str]:
        """The passage with its part changed, by what is done."""
        part = self.part
        if self.kind == "amount":
            found = {"x 1.2": f"(({part}) * 1.2)", "/ 1.2": f"(({part}) / 1.2)", "dropped": f"(({part}) * 0.0)"}
        elif self.kind == "log":
            found = {"x 1.2": f"(({part}) + {_LOG})", "/ 1.2": f"(({part}) - {_LOG})", "dropped": "0.0"}
        elif self.kind == "gate":
            row = re.match(r"(\s*)([\w.]+\.require|[\w.]+\.rows\.add)\(([\w\[\], .]+?) <=", part)
            assert row is not None, part
            found = {"always": f"{row[1]}pass", "never": f"{row[1]}{row[2]}({row[3]} <= 0)"}
        elif self.kind == "row":
            found = {"dropped": "pass"}
        else:
            found = dict(self.instead)
        found = {name: text for name, text in found.items() if not self.only or name in self.only}
        return {name: self.text.replace(f"<<{part}>>", text) for name, text in found.items()}


FILE_PROGRAM = "cosa/mip/analytical_program.py"
FILE_ORDERS = "cosa/mip/orders.py"
FILE_LINKS = "cosa/mip/links.py"
FILE_SPACE = "cosa/mip/space.py"
FILE_NETWORK = "cosa/mip/network_program.py"
FILE_PE = "cosa/mip/pe_words.py"
FILE_BATCH = "cosa/analytical/network_batch.py"
FILE_FOOTPRINT = "cosa/analytical/footprint.py"
FILE_FORMULA = "cosa/analytical/network_machine.py"
FILE_LEAST = "cosa/mappers/least.py"
FILE_LOADS = "cosa/analytical/loads.py"


BOTH = ("x 1.2", "/ 1.2")
LARGE = "a constant that only has to be large enough"
TOLERANCE = "a tolerance: whole numbers of words are told apart by any part of one"
UNPROVEN = "a tighter bound that no nest is known to break, and nobody has proven: it is not claimed"
WHOLE = "implied where choices are whole: it shortens the proof"


def sums(file: str, rows: tuple[str, ...]) -> tuple[Term, ...]:
    """Rows that are sums, as they stand: each whole, and each of its summands."""
    found = []
    for row in rows:
        found.append(Term(file, "amount", f"<<{row.rstrip(',')}>>,"))
        parts = row.rstrip(",").split(" + ")
        for at, part in enumerate(parts):
            if len(parts) > 1:
                others = [*parts[:at], f"<<{part}>>", *parts[at + 1 :]]
                found.append(Term(file, "amount", " + ".join(others) + ","))
    return tuple(found)
