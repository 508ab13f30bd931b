"""The terms of every bound, and how each is falsified: data of `mutate_bounds.py`.

A term is a passage of the source with the part that is changed between `<<` and `>>`. What is done to it is told by its
kind; `alike` names the mutants that bound as truly and as tightly, or only give a weaker bound by intention, and says why.
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


_PROGRAM = "cosa/mip/analytical_program.py"
_ORDERS = "cosa/mip/orders.py"
_LINKS = "cosa/mip/links.py"
_SPACE = "cosa/mip/space.py"
_NETWORK = "cosa/mip/network_program.py"
_BATCH = "cosa/analytical/network_batch.py"
_LEAST = "cosa/mappers/least.py"
_LOADS = "cosa/analytical/loads.py"


_BOTH = ("x 1.2", "/ 1.2")
_LARGE = "a constant that only has to be large enough"
_TOLERANCE = "a tolerance: whole numbers of words are told apart by any part of one"
_WHOLE = "implied where choices are whole: it shortens the proof"

PROGRAM = (
    # capacities
    Term(_PROGRAM, "amount", "room = log2(<<words>> - len(always - {tensor}) + 0.5)", only=_BOTH),
    Term(
        _PROGRAM,
        "amount",
        "room = log2(words - <<len(always - {tensor})>> + 0.5)",
        alike=dict.fromkeys(("/ 1.2", "dropped"), "the row of the sum of tiles bounds them, too"),
    ),
    Term(
        _PROGRAM,
        "amount",
        "self.require(tile <= room + <<excess>> * (1 - kept))",
        alike={"x 1.2": _LARGE},
    ),
    Term(_PROGRAM, "amount", "self.require(sum(parts) <= <<1>> + 0.5 / words)"),
    Term(
        _PROGRAM,
        "amount",
        "self.require(sum(parts) <= 1 + <<0.5 / words>>)",
        alike=dict.fromkeys((*_BOTH, "dropped"), _TOLERANCE),
    ),
    # words
    Term(_PROGRAM, "log", "return fetched + <<groups>> - self.links"),
    Term(_PROGRAM, "log", "return <<fetched>> + groups - self.links", only=_BOTH),
    Term(_PROGRAM, "log", "fetched = <<self.links.log_mac_visits(tensor)>> if child < 0", only=_BOTH),
    Term(_PROGRAM, "log", "return fetched + groups - <<self.links.log_saved(tensor, child, level)>>"),
    Term(_PROGRAM, "log", "return <<self.orders.log_fetched(tensor, level)>> - self.links.log_filled(tensor, level)"),
    Term(_PROGRAM, "log", "return self.orders.log_fetched(tensor, level) - <<self.links.log_filled(tensor, level)>>"),
    Term(
        _PROGRAM,
        "other",
        "outside = range(<<above + 1>>, len(self.architecture.levels))",
        {"the level itself, too": "above", "one less": "above + 2"},
    ),
    Term(
        _PROGRAM,
        "log",
        """return <<sum((self.log_loops(DIMS, level, ("temporal",)) for level in self._levels), 0.0)>>""",
    ),
    Term(_PROGRAM, "amount", """return <<float(box_words(self.layer, "outputs", self.layer.bounds))>>"""),
    Term(
        _PROGRAM,
        "amount",
        "moved >= <<touched_words(self.layer, tensor, self.layer.bounds)>> * each",
        alike=dict.fromkeys(("/ 1.2", "dropped"), _WHOLE),
    ),
    # energy
    Term(_PROGRAM, "amount", "total: Expression = <<macs>> / self.energy_unit_pj"),
    Term(
        _PROGRAM,
        "amount",
        "per_word = <<vector_access_energy_pj(self.architecture, level)>> / entry.block_words",
    ),
    Term(
        _PROGRAM,
        "other",
        "per_word = vector_access_energy_pj(self.architecture, level)<< / entry.block_words>>",
        {"for each word": ""},
    ),
    Term(_PROGRAM, "log", "words = <<self.log_sent(tensor, child, level)>> + arrays"),
    Term(_PROGRAM, "log", "words = self.log_sent(tensor, child, level) + <<arrays>>"),
    Term(
        _PROGRAM,
        "amount",
        """total = total - <<self.links.words_rounded(
                    tensor, range(child + 2, level + 1), _ROUNDED_READ * most_arrays / unit, arc
                )>>""",
    ),
    Term(_PROGRAM, "amount", "total = total + <<moved>>"),
    Term(_PROGRAM, "log", "fills, kept = self.log_filled(tensor, level) + <<arrays>>, self.keeps.kept[level, tensor]"),
    Term(
        _PROGRAM,
        "amount",
        """+ arrays, self.keeps.kept[level, tensor]
                total = total + <<self.power(f"{name} fills", fills, unit, kept)>>""",
    ),
    Term(
        _PROGRAM,
        "amount",
        "total = total - <<self.links.words_rounded(tensor, network, _ROUNDED_FILL * most_arrays / unit, kept)>>",
    ),
    Term(_PROGRAM, "amount", "total = total + <<sum(self._output_reads(level, *each, unit) for each in sent)>>"),
    Term(_PROGRAM, "amount", "most = log2(<<self.architecture.instances(level) // cluster>>)", only=_BOTH),
    Term(_PROGRAM, "row", "<<self.require(arrays >= most * full)>>"),
    Term(_PROGRAM, "row", "<<self.require(arrays >= used - longest * full)>>"),
    Term(
        _PROGRAM,
        "row",
        "<<self.require(used >= most * full)>>",
        alike={"dropped": "the smaller of the two is the less, whichever is said to be"},
    ),
    Term(
        _PROGRAM,
        "amount",
        "longest = log2(<<self.architecture.instances(level)>> + 0.5)",
        only=_BOTH,
        alike=dict.fromkeys(_BOTH, _LARGE),
    ),
    Term(
        _PROGRAM,
        "other",
        "return <<self.architecture.instances(level) == 1 and not self.selectors>>",
        {"always": "not self.selectors", "never": "False"},
    ),
    Term(_PROGRAM, "log", "return <<self.log_extent(relevant, self._levels[-1])>> - self.log_spatial(relevant, level)"),
    Term(
        _PROGRAM,
        "log",
        "return self.log_extent(relevant, self._levels[-1]) - <<self.log_spatial(relevant, level)>>",
        only=("dropped",),
    ),
    Term(
        _PROGRAM,
        "amount",
        """return sent - <<self.output_words()>> / unit * arc
        # log2""",
    ),
    Term(_PROGRAM, "log", "ratio = log_sent - <<self._log_arrays(level)>> - self._log_distinct(level)"),
    Term(
        _PROGRAM,
        "other",
        "_SHARE_STEPS = <<(1, 2, 3, 4, 6)>>",
        {
            "without 1": "(2, 3, 4, 6)",
            "without 2": "(1, 3, 4, 6)",
            "without 3": "(1, 2, 4, 6)",
            "without 4": "(1, 2, 3, 6)",
            "without 6": "(1, 2, 3, 4)",
        },
    ),
    Term(_PROGRAM, "row", "<<self.require(ratio <= step - APART + longest * reached)>>"),
    Term(
        _PROGRAM,
        "amount",
        "self.require(ratio <= step - APART + <<longest>> * reached)",
        alike=dict.fromkeys(_BOTH, _LARGE),
    ),
    Term(_PROGRAM, "amount", "here = log2(1 - <<2.0**-step>>)"),
    Term(_PROGRAM, "amount", "share = share + <<(here - previous)>> * reached"),
    Term(_PROGRAM, "log", "outputs reads\", log_sent + <<share>>, unit, arc)"),
    # cycles
    Term(
        _PROGRAM,
        "amount",
        """rows.add(cycles >= <<self.power("compute", self.log_compute(), self.cycles_unit)>>)""",
    ),
    Term(_PROGRAM, "amount", "unit = self.cycles_unit * <<bandwidth>>", only=_BOTH),
    Term(_PROGRAM, "amount", "words = words + <<self._words(tensor, level, direction, unit)>>"),
    Term(
        _PROGRAM,
        "amount",
        "total = total - <<self.links.words_rounded(tensor, networks, _ROUNDED_READ / unit, arc)>>",
    ),
    Term(
        _PROGRAM,
        "amount",
        """fills, kept = self.log_filled(tensor, level), self.keeps.kept[level, tensor]
                total = total + <<self.power(f"{name} fills", fills, unit, kept)>>""",
    ),
    Term(
        _PROGRAM,
        "amount",
        "total = total - <<self.links.words_rounded(tensor, network, _ROUNDED_FILL / unit, kept)>>",
    ),
    Term(_PROGRAM, "amount", "total = total + <<sum(self.power(name, words, unit, arc) for words, arc in sent)>>"),
    Term(
        _PROGRAM,
        "amount",
        "return total + <<sum(self._read(name, tensor, level, words, unit, arc) for words, arc in sent)>>",
    ),
    Term(_PROGRAM, "amount", "return self.power(name, sent, unit, arc) - <<self.output_words()>> / unit * arc"),
    Term(
        _PROGRAM,
        "row",
        "<<self.require(sent - self._log_distinct(level) <= 1 - APART + self._log_longest() * again)>>",
    ),
    Term(
        _PROGRAM,
        "log",
        "self.require(sent - <<self._log_distinct(level)>> <= 1 - APART + self._log_longest() * again)",
    ),
    Term(_PROGRAM, "log", "return self.power(name, sent - <<1>> - 60 * (1 - again), unit, arc)"),
)

ORDERS = (
    # modes
    Term(_ORDERS, "row", "<<space.require(sum(self.modes[level, tensor] for tensor in TENSORS) == 1)>>"),
    Term(_ORDERS, "gate", "<<self.space.require(self.sliding[level, dim] <= self.clear(level, inside))>>"),
    Term(
        _ORDERS,
        "gate",
        "<<self.space.require(self.sliding[level, dim] <= 1 - sum(self.modes[level, tensor] for tensor in blocking))>>",
    ),
    Term(_ORDERS, "row", """<<blocking = (*blocking, "inputs")>>"""),
    Term(
        _ORDERS,
        "row",
        "<<self.space.require(sum(self.sliding[level, dim] for dim in dims) <= 1)>>",
    ),
    Term(_ORDERS, "row", "<<self.space.require(count <= multiplicity - multiplicity * binary)>>"),
    # visits
    Term(_ORDERS, "log", """return <<sum((self.space.log_loops(DIMS, level, ("temporal",)) for level in outside), 0.0)>>"""),
    Term(_ORDERS, "log", """total = total + <<space.log_loops(moving, level, ("temporal",))>>"""),
    Term(_ORDERS, "log", "total = total + <<counted>>"),
    Term(_ORDERS, "row", "<<space.require(counted >= loops - longest * skipped)>>"),
    Term(_ORDERS, "row", "<<space.require(counted <= loops)>>"),
    Term(
        _ORDERS,
        "amount",
        "space.require(counted >= loops - <<longest>> * skipped)",
        alike={"x 1.2": _LARGE},
    ),
    Term(_ORDERS, "gate", "<<space.require(skipped <= self.clear(level, inside))>>"),
    Term(_ORDERS, "gate", "<<space.require(skipped <= self.modes[level, tensor] + self.clear(level, RELEVANT[tensor]))>>"),
    Term(
        _ORDERS,
        "other",
        "space.require(skipped <= self.modes[level, tensor]<< + self.clear(level, RELEVANT[tensor])>>)",
        {"dropped": ""},
    ),
    Term(_ORDERS, "gate", "<<space.require(skipped <= self.clear(inner, RELEVANT[tensor]))>>"),
    Term(_ORDERS, "gate", "<<space.require(skipped <= given)>>"),
    # words
    Term(_ORDERS, "log", "fetched = self.log_visits(tensor, child) + <<tile>>"),
    Term(_ORDERS, "log", "fetched = <<self.log_visits(tensor, child)>> + tile"),
    Term(_ORDERS, "log", "return fetched - <<self._credit(child)>>"),
    Term(_ORDERS, "log", """self._touched[level] = <<space.log_extent(("C", "N", "G"), level)>> + sum("""),
    Term(_ORDERS, "log", "<<log_touched(space, axis, level)>> for axis in sliding_axes(space.layer)"),
    # sliding windows
    Term(_ORDERS, "gate", "<<space.require(gain <= largest * slides)>>"),
    Term(_ORDERS, "gate", "<<space.require(gain <= sum(gains[pair] * table[pair] for pair in table if gains[pair]))>>"),
    Term(_ORDERS, "gate", "<<space.require(gain <= self._log_sweep(axis, dim, child))>>"),
    Term(_ORDERS, "amount", "gains = {pair: <<log2(self._gain(axis, dim, pair, 1))>> for pair in table}"),
    Term(_ORDERS, "amount", "total = total + <<gain>>"),
    Term(
        _ORDERS,
        "row",
        """<<space.require(sum(allowed) + (back if self.rule == "timeloop" else 0) <= 1)>>""",
    ),
    Term(_ORDERS, "amount", "self._credits[child] = total + <<back>>"),
    Term(
        _ORDERS,
        "log",
        """self.log_visits("inputs", child) - <<space.weighted(outside, ("C", "N", "G"), ("temporal",), log2)>>""",
    ),
    Term(_ORDERS, "log", """return <<self.log_visits("inputs", child)>> - space.weighted"""),
    Term(_ORDERS, "log", """own = <<space.weighted(outside, (dim,), ("temporal",), log2)>>"""),
    Term(_ORDERS, "amount", "return own + <<log2(space.longest(partner))>> * goes_on"),
    Term(
        _ORDERS,
        "gate",
        """<<space.require(goes_on <= space.weighted(outside, (one,), ("temporal",), lambda prime: 1))>>""",
    ),
    Term(_ORDERS, "row", "<<space.require_meeting(goes_on, axis, child, reach=1.5)>>"),
    Term(
        _ORDERS,
        "other",
        "space.require_meeting(goes_on, axis, child, reach=<<1.5>>)",
        {"x 1.2": "1.8", "/ 1.2": "1.25", "as far only": "1.0"},
    ),
    # back and forth
    Term(_ORDERS, "log", """return visits - <<self._back_and_forth(child)>> if tensor == "inputs" """.rstrip()),
    Term(
        _ORDERS,
        "gate",
        """<<space.require(both <= space.weighted(outside, (dim,), ("temporal",), lambda prime: 1))>>""",
    ),
    Term(_ORDERS, "gate", "<<space.require(both <= sum(self._stays_innermost(child, level) for level in outside))>>"),
    Term(_ORDERS, "row", "<<space.require_meeting(both, axis, child)>>"),
    Term(_ORDERS, "amount", "found.append(<<both>>)"),
    Term(_ORDERS, "row", "<<space.require(sum(found) <= 1)>>"),
    Term(
        _ORDERS,
        "gate",
        """<<space.require(here <= space.weighted((level,), GROUPS["inputs"], ("temporal",), lambda prime: 1))>>""",
    ),
    Term(_ORDERS, "gate", """<<space.require(here <= self.modes[level, "inputs"])>>"""),
    Term(_ORDERS, "gate", """<<space.require(here <= self.clear(inner, RELEVANT["inputs"]))>>"""),
    # slides
    Term(_ORDERS, "gate", "<<self.space.require(here <= self.sliding[level, dim])>>"),
    Term(_ORDERS, "gate", "<<self.space.require(here <= self.clear(inner, moving))>>"),
    Term(_ORDERS, "gate", "<<self.space.require(slides <= sum(at.values()))>>"),
    Term(
        _ORDERS,
        "other",
        """moving = <<frozenset(DIMS) if self.rule == "timeloop" else RELEVANT["inputs"]>>""",
        {"all loops": "frozenset(DIMS)", "those of inputs": """RELEVANT["inputs"]"""},
    ),
    Term(_ORDERS, "row", "<<space.require(count <= multiplicity * (spread + further_in))>>"),
    Term(_ORDERS, "amount", "space.require(count <= multiplicity * (spread + <<further_in>>))", only=("dropped",)),
    Term(_ORDERS, "gate", "<<space.require(gain <= saved + largest * (1 - spread))>>"),
    Term(_ORDERS, "amount", "gains = {pair: <<log2(self._gain(axis, dim, pair, 2))>> for pair in table}"),
    Term(
        _ORDERS,
        "amount",
        "space.require(gain <= saved + <<largest>> * (1 - spread))",
        only=_BOTH,
        alike={"x 1.2": _LARGE},
    ),
    # groups
    Term(_ORDERS, "log", """total = total + <<space.log_loops(dims, level, ("spatial",))>>"""),
    Term(_ORDERS, "log", """total = total + <<space.log_loops(("C", "N", "G"), level, ("spatial",))>>"""),
    Term(_ORDERS, "log", """total = total + <<space.log_loops(sides, level, ("spatial",))>>"""),
    Term(_ORDERS, "log", "total = total + <<longer>>"),
    Term(_ORDERS, "row", """<<space.require(longer >= space.log_loops((dim,), level, ("spatial",)))>>"""),
    # gains
    Term(_ORDERS, "amount", "return max(1.0, <<span / (step * side_by_side)>>)", only=_BOTH),
    Term(
        _ORDERS,
        "other",
        "return max(1.0, span / (step<< * side_by_side>>))",
        {"one alone": ""},
    ),
    Term(_ORDERS, "amount", "words = <<touched_positions(axis, outputs, taps)>>", only=_BOTH),
    Term(
        _ORDERS,
        "other",
        "ways = range(side_by_side, <<max(side_by_side, -(-span // step)) + 1>>)",
        {"the nearest alone": "side_by_side + 1"},
    ),
)

LINKS = (
    Term(_LINKS, "other", "if <<self.space.most_instances(0) > 1>>:", {"never": "False"}),
    Term(_LINKS, "other", """if <<tensor != "inputs">>:
            return 0.0
        return self._network(child + 1)""", {"all tensors": "False", "none": "True"}),
    Term(
        _LINKS,
        "log",
        "return <<self._network(child + 1).saved>> + sum(",
    ),
    Term(_LINKS, "log", "<<self._network(at).uneven>> for at in range(child + 2, level + 1)"),
    Term(_LINKS, "log", """return <<self._network(child + 1).saved>> if tensor == "inputs" else 0.0"""),
    Term(_LINKS, "gate", "<<self.space.require(rounded <= sum(active))>>"),
    Term(_LINKS, "gate", "<<self.space.require(rounded <= given)>>", alike={"always": "a power that is not given is 0"}),
    Term(_LINKS, "gate", """<<space.require(returns <= self._sharing(level, "inputs"))>>"""),
    Term(_LINKS, "gate", "<<space.require(active <= sum(ways.values()) + returns)>>"),
    Term(_LINKS, "amount", "saved: Expression = <<returns>>"),
    Term(_LINKS, "amount", """saved = saved + <<self._saved_along(
                axis, level, one, {a: ways[a] + undone[a] for a in self._axes if a != axis}
            )>>"""),
    Term(_LINKS, "amount", "uneven = uneven + <<log2(MOST_UNEVEN)>> * both"),
    Term(_LINKS, "gate", "<<space.require(both <= active)>>"),
    Term(_LINKS, "row", "<<space.require(sum(chosen) <= 1)>>"),
    Term(_LINKS, "gate", "<<space.require(saved <= most * given)>>"),
    Term(_LINKS, "gate", """<<space.require(saved <= space.log_loops((axis.outputs, axis.taps), level, ("spatial",)))>>"""),
    Term(
        _LINKS,
        "gate",
        """<<space.require(saved <= visits - space.weighted(outside, alone, ("temporal",), log2) + slack)>>""",
    ),
    Term(_LINKS, "log", """saved <= visits - <<space.weighted(outside, alone, ("temporal",), log2)>> + slack"""),
    Term(_LINKS, "amount", "slack = slack + <<possible * log2(space.longest(other.outputs) * space.longest(other.taps))>>"),
    Term(_LINKS, "amount", "most = <<log2(prod(space.architecture.fanout(level)) + 0.5)>>", alike={"x 1.2": _LARGE}),
    Term(
        _LINKS,
        "other",
        """for still, moving in <<(pair, pair[::-1])>>""",
        {"taps moving": "(pair[::-1],)", "outputs moving": "(pair,)"},
    ),
    Term(_LINKS, "amount", """return <<self._meeting((axis.outputs, "temporal", level), (axis.taps, "temporal", level), axis)>>""",
         only=("dropped",)),
    Term(_LINKS, "gate", "<<self.space.require(found <= most)>>"),
    Term(_LINKS, "other", """found = <<self._loops(GROUPS[tensor], "spatial", level)>>
        if""", {"dropped": "0.0"}),
    Term(_LINKS, "other", """found = found + <<sum(
                self._both((axis.outputs, "spatial", level), (axis.taps, "spatial", level)) for axis in self._axes
            )>>""", {"dropped": "0.0"}),
    Term(_LINKS, "row", "<<self.space.require_meeting(found, axis, min(one[2], other[2]) - 1)>>"),
    Term(
        _LINKS,
        "other",
        "self.space.require_meeting(found, axis, <<min(one[2], other[2]) - 1>>)",
        {"one further in": "min(one[2], other[2]) - 2", "one further out": "min(one[2], other[2])"},
    ),
    Term(_LINKS, "gate", "<<self.space.require(found <= self._loops((dim,), kind, level))>>"),
)

SPACE = (
    Term(_SPACE, "amount", "room = log2(<<(self.longest(partner) - 0.5)>> * reach * back / step)", only=_BOTH),
    Term(_SPACE, "other", "room = log2((self.longest(partner) - 0.5) * reach * <<back / step>>)", {"without steps": "1"}),
    Term(_SPACE, "other", "(self.longest(partner)<< - 0.5>>)", {"dropped": ""}, alike={"dropped": "a tile is whole: none is as long as half an index less"}),
    Term(_SPACE, "row", "<<self.require(found <= 0)>>"),
    Term(_SPACE, "row", "<<self.require(self.log_extent((dim,), level) <= room + (longest - room) * (1 - found))>>"),
    Term(_SPACE, "amount", "<= room + <<(longest - room)>> * (1 - found)", alike={"x 1.2": _LARGE}),
    Term(_SPACE, "row", "<<self.require(sum(placed) == wanted)>>"),
    Term(
        _SPACE,
        "amount",
        """self.require(self.log_loops(DIMS, level, ("spatial",)) <= log2(<<instances>> + 0.5))""",
        only=_BOTH,
    ),
    Term(_SPACE, "amount", "self.require(self.log_limited(limit) <= log2(<<limit.most>> + 0.5))", only=_BOTH),
    Term(_SPACE, "amount", "self.require(product >= log2(<<rule.least>> - 0.5))", only=_BOTH),
    Term(_SPACE, "amount", "self.require(product <= log2(<<rule.most>> + 0.5))", only=_BOTH),
)

MUTANTS = {"program": PROGRAM, "orders": ORDERS, "links": LINKS, "space": SPACE}

TESTS = dict.fromkeys(MUTANTS, ("tests/cosa/test_bound_rows.py",))
"""The tests that must notice, by group; they run in this order until one fails."""
