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
_PE = "cosa/mip/pe_words.py"
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
    Term(_PROGRAM, "log", 'outputs reads", log_sent + <<share>>, unit, arc)'),
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
    Term(
        _ORDERS,
        "log",
        """return <<sum((self.space.log_loops(DIMS, level, ("temporal",)) for level in outside), 0.0)>>""",
    ),
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
    Term(
        _ORDERS, "gate", "<<space.require(skipped <= self.modes[level, tensor] + self.clear(level, RELEVANT[tensor]))>>"
    ),
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
    Term(
        _LINKS,
        "other",
        """if <<tensor != "inputs">>:
            return 0.0
        return self._network(child + 1)""",
        {"all tensors": "False", "none": "True"},
    ),
    Term(
        _LINKS,
        "log",
        "return <<self._network(child + 1).saved>> + sum(",
    ),
    Term(_LINKS, "log", "<<self._network(at).uneven>> for at in range(child + 2, level + 1)"),
    Term(_LINKS, "log", """return <<self._network(child + 1).saved>> if tensor == "inputs" else 0.0"""),
    Term(_LINKS, "gate", "<<self.space.require(rounded <= sum(active))>>"),
    Term(
        _LINKS, "gate", "<<self.space.require(rounded <= given)>>", alike={"always": "a power that is not given is 0"}
    ),
    Term(_LINKS, "gate", """<<space.require(returns <= self._sharing(level, "inputs"))>>"""),
    Term(_LINKS, "gate", "<<space.require(active <= sum(ways.values()) + returns)>>"),
    Term(_LINKS, "amount", "saved: Expression = <<returns>>"),
    Term(
        _LINKS,
        "amount",
        """saved = saved + <<self._saved_along(
                axis, level, one, {a: ways[a] + undone[a] for a in self._axes if a != axis}
            )>>""",
    ),
    Term(_LINKS, "amount", "uneven = uneven + <<log2(MOST_UNEVEN)>> * both"),
    Term(_LINKS, "gate", "<<space.require(both <= active)>>"),
    Term(_LINKS, "row", "<<space.require(sum(chosen) <= 1)>>"),
    Term(_LINKS, "gate", "<<space.require(saved <= most * given)>>"),
    Term(
        _LINKS,
        "gate",
        """<<space.require(saved <= space.log_loops((axis.outputs, axis.taps), level, ("spatial",)))>>""",
    ),
    Term(
        _LINKS,
        "gate",
        """<<space.require(saved <= visits - space.weighted(outside, alone, ("temporal",), log2) + slack)>>""",
    ),
    Term(_LINKS, "log", """saved <= visits - <<space.weighted(outside, alone, ("temporal",), log2)>> + slack"""),
    Term(
        _LINKS,
        "amount",
        "slack = slack + <<possible * log2(space.longest(other.outputs) * space.longest(other.taps))>>",
    ),
    Term(_LINKS, "amount", "most = <<log2(prod(space.architecture.fanout(level)) + 0.5)>>", alike={"x 1.2": _LARGE}),
    Term(
        _LINKS,
        "other",
        """for still, moving in <<(pair, pair[::-1])>>""",
        {"taps moving": "(pair[::-1],)", "outputs moving": "(pair,)"},
    ),
    Term(
        _LINKS,
        "amount",
        """return <<self._meeting((axis.outputs, "temporal", level), (axis.taps, "temporal", level), axis)>>""",
        only=("dropped",),
    ),
    Term(_LINKS, "gate", "<<self.space.require(found <= most)>>"),
    Term(
        _LINKS,
        "other",
        """found = <<self._loops(GROUPS[tensor], "spatial", level)>>
        if""",
        {"dropped": "0.0"},
    ),
    Term(
        _LINKS,
        "other",
        """found = found + <<sum(
                self._both((axis.outputs, "spatial", level), (axis.taps, "spatial", level)) for axis in self._axes
            )>>""",
        {"dropped": "0.0"},
    ),
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
    Term(
        _SPACE, "other", "room = log2((self.longest(partner) - 0.5) * reach * <<back / step>>)", {"without steps": "1"}
    ),
    Term(
        _SPACE,
        "other",
        "(self.longest(partner)<< - 0.5>>)",
        {"dropped": ""},
        alike={"dropped": "a tile is whole: none is as long as half an index less"},
    ),
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


def _terms(file: str, rows: tuple[str, ...]) -> tuple[Term, ...]:
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


BATCH = (
    *_terms(
        _BATCH,
        (
            "loads.start + loads.compute + loads.tail,",
            "loads.dram_out + waits * step + loads.tail,",
            "loads.weights + waits * loads.last_weights + loads.tail,",
            "loads.link + waits * step + loads.tail,",
            "loads.gb_out + loads.first_in,",
            "loads.gb_in + loads.last_out,",
            "loads.dram_in + loads.before_writes,",
            "loads.pe_in + loads.tail,",
        ),
    ),
    Term(_BATCH, "amount", "<<loads.gb_out - loads.prefetched + loads.start>>,"),
    Term(_BATCH, "amount", "loads.gb_out - <<loads.prefetched>> + loads.start,"),
    Term(_BATCH, "amount", "loads.gb_out - loads.prefetched + <<loads.start>>,"),
    Term(_BATCH, "amount", "candidates.append(<<loads.dram_bytes / dram_bytes_per_cycle>>)"),
    Term(_BATCH, "amount", "compute = <<shape.compute>> + steps * self.architecture.pe.pipeline_latency_cycles"),
    Term(
        _BATCH,
        "amount",
        "compute = shape.compute + <<steps * self.architecture.pe.pipeline_latency_cycles>>",
    ),
    Term(_BATCH, "amount", "sent = groups * <<own.flits>>"),
    Term(_BATCH, "amount", "pe_in += <<sent / groups>>"),
    Term(_BATCH, "amount", "first = groups * <<self.flits(own.tile, bits)>>"),
    Term(_BATCH, "amount", "gb_out += <<sent>>"),
    Term(_BATCH, "amount", "gb_in += <<far.flits>>"),
    Term(_BATCH, "amount", "dram_out += <<far.flits>>"),
    Term(_BATCH, "amount", "dram_bytes += <<far.fetched * bits / 8>>"),
    Term(_BATCH, "amount", "start += <<first_far / ports_dram>>"),
    Term(_BATCH, "amount", "first_in += <<first_far / ports_dram>>"),
    Term(_BATCH, "amount", "np.maximum(waits_for_buffer, <<first_far / ports_dram>> + first / ports_gb)"),
    Term(_BATCH, "amount", "np.maximum(waits_for_buffer, first_far / ports_dram + <<first / ports_gb>>)"),
    Term(_BATCH, "amount", "prefetched += (<<sets * first>> + first - first / groups) / ports_gb"),
    Term(_BATCH, "amount", "prefetched += (sets * first + <<first - first / groups>>) / ports_gb"),
    Term(_BATCH, "amount", "dram_out += <<sent>>"),
    Term(_BATCH, "amount", "dram_bytes += <<groups * own.fetched * bits / 8>>"),
    Term(_BATCH, "amount", "start += <<first / ports_dram>>"),
    Term(_BATCH, "amount", """weights += <<sent / ports_dram>> if tensor == "weights" else 0.0"""),
    Term(_BATCH, "amount", "final = <<groups * distinct>> * self.flits(tile_words, bits)"),
    Term(_BATCH, "amount", "again_in = <<groups * again * tile_flits>>"),
    Term(_BATCH, "amount", "reduced = <<own.visits * tile_flits * np.minimum(1, pes / groups - 1)>>"),
    Term(_BATCH, "amount", "pe_in += <<again_in / groups>> + reduced"),
    Term(_BATCH, "amount", "step = <<compute / steps>>\n        last_out"),
    Term(_BATCH, "amount", "last_of_pe = <<self.flits(tile_words, min(bits, self.partial_bits))>>"),
    Term(_BATCH, "amount", "gb_in += <<final>> + again_in"),
    Term(_BATCH, "amount", "gb_in += final + <<again_in>>"),
    Term(_BATCH, "amount", "gb_out += <<again_in>>"),
    Term(_BATCH, "amount", "far_final = <<far_distinct * self.flits(far.tile, bits)>>"),
    Term(
        _BATCH,
        "amount",
        "far_partial = <<np.maximum(0, far.visits - far_distinct) * self.flits(far.tile, self.partial_bits)>>",
    ),
    Term(_BATCH, "amount", "gb_out += <<far_final>> + far_partial"),
    Term(_BATCH, "amount", "gb_out += far_final + <<far_partial>>"),
    Term(_BATCH, "amount", "gb_in += <<far_partial>>"),
    Term(_BATCH, "amount", "dram_in += <<far_final>> + far_partial"),
    Term(_BATCH, "amount", "dram_in += far_final + <<far_partial>>"),
    Term(_BATCH, "amount", "dram_out += <<far_partial>>"),
    Term(_BATCH, "amount", "spilled = <<np.maximum(0, far.visits - far_distinct) * far.tile * self.partial_bits / 8>>"),
    Term(_BATCH, "amount", "last_out += <<self.flits(far.tile, bits) / min(ports_gb, ports_dram)>>"),
    Term(
        _BATCH,
        "amount",
        """before_writes = start + <<compute / self._steps(shape, "outputs", self.mesh)>> + last_of_pe""",
    ),
    Term(
        _BATCH,
        "amount",
        """before_writes = <<start>> + compute / self._steps(shape, "outputs", self.mesh) + last_of_pe""",
    ),
    Term(
        _BATCH,
        "amount",
        """before_writes = start + compute / self._steps(shape, "outputs", self.mesh) + <<last_of_pe>>""",
    ),
    Term(_BATCH, "amount", "dram_in += <<final>> + again_in"),
    Term(_BATCH, "amount", "dram_in += final + <<again_in>>"),
    Term(_BATCH, "amount", "dram_out += <<again_in>>"),
    Term(_BATCH, "amount", "spilled = <<groups * again * tile_words * self.partial_bits / 8>>"),
    Term(_BATCH, "amount", "dram_bytes += <<all_words * bits / 8>> + 2 * spilled"),
    Term(_BATCH, "amount", "dram_bytes += all_words * bits / 8 + <<2 * spilled>>"),
    Term(_BATCH, "amount", "link=<<operands * busiest_link_share(self.noc)>>,"),
    Term(
        _BATCH,
        "amount",
        "prefetched=prefetched + <<again_in / ports_gb>> if buffered",
    ),
    Term(_BATCH, "amount", """last_weights=<<compute / steps_of["weights"]>>,"""),
    Term("cosa/analytical/shapes.py", "amount", "found = found * (1 - <<again / (sides[0] * sides[1])>>)"),
    Term("cosa/analytical/shapes.py", "other", "mixed = both & (<<(beside > 1)>> |", {"never": "False & (beside > 1)"}),
)

NETWORK = (
    # flits
    Term(_NETWORK, "amount", "return bits / self.noc.flit_bits * <<(1 + 1 / payload)>>", only=_BOTH),
    Term(_NETWORK, "row", "<<self.require(flits >= by_words)>>"),
    Term(_NETWORK, "row", "<<self.require(flits >= by_transfers)>>"),
    Term(
        _NETWORK,
        "amount",
        """return 1 + self.noc.packet_payload_flits if self.noc.partial_packets == "full" else <<2>>""",
    ),
    Term(
        _NETWORK,
        "amount",
        """return <<1 + self.noc.packet_payload_flits>> if self.noc.partial_packets == "full" else 2""",
    ),
    # rows
    *_terms(
        _NETWORK,
        (
            "compute + waits * start + tail,",
            "dram_out * (1 / ports_dram) + waits * step + tail,",
            "operands * busiest_link_share(self.noc) + waits * step + tail,",
            "gb_out * (1 / ports_gb) + first_far * (1 / ports_dram),",
            "gb_in * (1 / ports_gb) + last_out,",
            "dram_in * (1 / ports_dram) + before_writes,",
            "pe_in + tail,",
        ),
    ),
    Term(_NETWORK, "amount", "*(<<load + tail>> for load in last_weights),"),
    Term(_NETWORK, "amount", "*(load + <<tail>> for load in last_weights),"),
    Term(_NETWORK, "amount", "loads.append(<<(gb_sends - prefetched) * (1 / ports_gb) + waits * start>>)"),
    Term(_NETWORK, "amount", "loads.append((gb_sends - <<prefetched>>) * (1 / ports_gb) + waits * start)"),
    Term(_NETWORK, "amount", "loads.append((gb_sends - prefetched) * (1 / ports_gb) + <<waits * start>>)"),
    Term(_NETWORK, "amount", "loads.append(<<self._dram_bytes * (1 / rate)>>)"),
    # terms
    Term(_NETWORK, "row", "<<self.require(steps >= visits)>>"),
    Term(_NETWORK, "amount", 'pe_in = pe_in + <<self._flits(f"{tensor} into a PE", fetched, transfers, bits, given)>>'),
    Term(_NETWORK, "amount", "from_memory = from_memory + <<sent>>"),
    Term(_NETWORK, "log", "log_first = <<first_of_pe>> + groups"),
    Term(_NETWORK, "log", "log_first = first_of_pe + <<groups>>"),
    Term(_NETWORK, "log", "fetched + <<groups>>, transfers + groups, bits, given)"),
    Term(_NETWORK, "log", "fetched + groups, transfers + <<groups>>, bits, given)"),
    Term(_NETWORK, "amount", "first_to_pes, gb_out = first_to_pes + <<first>>, gb_out + sent"),
    Term(_NETWORK, "amount", "first_to_pes, gb_out = first_to_pes + first, gb_out + <<sent>>"),
    Term(_NETWORK, "amount", "prefetched = prefetched + <<(sets + 1) * self._first_at_most(tensor, store)>>"),
    Term(_NETWORK, "amount", "from_dram = from_dram + <<sent>>"),
    Term(
        _NETWORK,
        "amount",
        """first_in = first_in + <<self._flits(f"{tensor} first", log_first, groups, bits, given)>>""",
    ),
    Term(_NETWORK, "amount", """<<sent * (1 / ports_dram)>> + waits * last)"""),
    Term(_NETWORK, "amount", """sent * (1 / ports_dram) + <<waits * last>>)"""),
    Term(_NETWORK, "log", """self.power("last weights", log_compute - <<visits>>, self.cycles_unit, given)"""),
    Term(_NETWORK, "amount", "gb_in, from_dram = gb_in + <<moved>>, from_dram + moved"),
    Term(_NETWORK, "amount", "gb_in, from_dram = gb_in + moved, from_dram + <<moved>>"),
    Term(_NETWORK, "amount", "first_far, first_in = first_far + <<of_buffer>>, first_in + of_buffer"),
    Term(_NETWORK, "amount", "first_far, first_in = first_far + of_buffer, first_in + <<of_buffer>>"),
    Term(_NETWORK, "amount", "start >= <<of_buffer * (1 / ports_dram)>> + first_to_pes * (1 / ports_gb)"),
    Term(_NETWORK, "amount", "start >= of_buffer * (1 / ports_dram) + <<first_to_pes * (1 / ports_gb)>>"),
    Term(_NETWORK, "row", "<<self.require(start >= first_in * (1 / ports_dram))>>"),
    Term(_NETWORK, "amount", "dram_out, to_pes = dram_out + <<from_dram>>, to_pes + from_memory"),
    Term(_NETWORK, "amount", "dram_out, to_pes = dram_out + from_dram, to_pes + <<from_memory>>"),
    Term(_NETWORK, "amount", "pe_in, chain = pe_in + <<reduced>>, chain + hops"),
    Term(_NETWORK, "amount", "pe_in, chain = pe_in + reduced, chain + <<hops>>"),
    Term(_NETWORK, "amount", "to_pes, partial = to_pes + <<again>>, partial + again"),
    Term(_NETWORK, "amount", "to_pes, partial = to_pes + again, partial + <<again>>"),
    Term(_NETWORK, "amount", "from_buffer = <<from_buffer + again>> if buffered else from_buffer"),
    Term(_NETWORK, "amount", "dram_out = dram_out if buffered else dram_out + <<again>>"),
    Term(
        _NETWORK,
        "amount",
        """tail = tail + <<self._flits("last outputs of a PE", log_last, 0.0, narrow, given)>>""",
    ),
    Term(_NETWORK, "amount", "dram_in: Expression = <<final>> + partial - from_buffer"),
    Term(_NETWORK, "amount", "dram_in: Expression = final + <<partial>> - from_buffer"),
    Term(_NETWORK, "amount", "dram_in: Expression = final + partial - <<from_buffer>>"),
    Term(_NETWORK, "amount", "gb_in = gb_in + <<final * given>> + from_buffer + far_partial"),
    Term(_NETWORK, "amount", "gb_in = gb_in + final * given + <<from_buffer>> + far_partial"),
    Term(_NETWORK, "amount", "gb_in = gb_in + final * given + from_buffer + <<far_partial>>"),
    Term(_NETWORK, "amount", "gb_sends = gb_out + <<final * given>> + far_partial"),
    Term(_NETWORK, "amount", "gb_sends = gb_out + final * given + <<far_partial>>"),
    Term(_NETWORK, "amount", "gb_out = gb_sends + <<from_buffer>>"),
    Term(_NETWORK, "amount", "dram_in, dram_out = dram_in + <<far_partial>>, dram_out + far_partial"),
    Term(_NETWORK, "amount", "dram_in, dram_out = dram_in + far_partial, dram_out + <<far_partial>>"),
    Term(_NETWORK, "amount", """last_out = <<self._flits("last outputs", tile, 0.0, bits, given)>> *"""),
    Term(_NETWORK, "log", """self.power("first outputs", log_compute - <<far_visits>>, self.cycles_unit)"""),
    Term(_NETWORK, "amount", "before_writes = <<waits * start>> + first_visit + tail"),
    Term(_NETWORK, "amount", "before_writes = waits * start + <<first_visit>> + tail"),
    Term(_NETWORK, "amount", "before_writes = waits * start + first_visit + <<tail>>"),
    Term(_NETWORK, "amount", "tail = tail + <<last_out>>"),
    Term(
        _NETWORK,
        "amount",
        "self._dram_bytes = self._dram_bytes + <<self.output_words() * bits / 8 / self.cycles_unit>>",
    ),
    Term(
        _NETWORK,
        "amount",
        """self._dram_bytes = self._dram_bytes + <<self.power(f"{tensor} DRAM", log_words, unit, given)>>""",
    ),
    Term(_NETWORK, "amount", "compute = <<compute>> + steps * self.architecture.pe.pipeline_latency_cycles"),
    Term(_NETWORK, "amount", "compute = compute + <<steps * self.architecture.pe.pipeline_latency_cycles>>"),
    # prediction
    *(
        Term(_NETWORK, "amount", text)
        for text in (
            "<<weights.floor * floor>>",
            "<<weights.compute * compute>>",
            "<<weights.dram_out / ports_dram * dram_out>>",
            "<<weights.dram_in / ports_dram * dram_in>>",
            "<<weights.to_pes / max(ports_gb, ports_dram) * to_pes>>",
            "<<weights.reloads * partial>>",
            "<<weights.reductions * chain>>",
            "<<weights.shared * shared>>",
            "<<weights.late * late>>",
            "<<weights.first_in / ports_dram * first_far>>",
            "<<weights.last_out * last_out>>",
            "<<weights.cycles_per_step * steps>>",
        )
    ),
    # words of a PE
    Term(_PE, "log", "first = log_tile(self.orders, tensor, store) + <<beside>>"),
    Term(_PE, "log", "fetched = self.orders.log_fetched(tensor, store) + <<beside>>"),
    Term(_PE, "row", "<<space.require(wider >= own - of_one)>>"),
    Term(_PE, "log", "space.require(wider >= own - <<of_one>>)"),
    Term(_PE, "log", """return first, <<space.weighted(outside, DIMS, ("temporal",), log2)>> + first"""),
    Term(_PE, "row", "<<space.require(count <= space.factors[dim][prime] * between)>>"),
    Term(_PE, "row", """<<space.require(known >= first + space.weighted(outside, apart, ("temporal",), log2))>>"""),
    Term(_PE, "row", "<<space.require(known >= fetched + _NEVER * between)>>"),
    # outputs, reductions, steps
    Term(
        _NETWORK,
        "amount",
        """final = <<self.output_words() * self._flits_per_word(self._bits("outputs"))>> / self.cycles_unit""",
    ),
    Term(_NETWORK, "amount", "self.require(partial >= sent - <<most>> * each / self.cycles_unit * given)"),
    Term(_NETWORK, "row", "<<self.require(partial >= sent - most * each / self.cycles_unit * given)>>"),
    Term(_NETWORK, "row", "<<self.require(count <= multiplicity * reduces)>>"),
    Term(_NETWORK, "amount", """hops = <<CHAIN_EXPONENT * self.log_loops(dims, self.mesh, ("spatial",))>>"""),
    Term(_NETWORK, "row", "<<self.require(exponent >= log_one + _OFFSET - _NEVER * (first - 1))>>"),
    Term(_NETWORK, "row", "<<self.require(exponent >= log_other + _OFFSET + _NEVER * first)>>"),
    Term(_NETWORK, "row", "<<self.require(goes <= 1 - APART - _NEVER * several)>>"),
    Term(_NETWORK, "row", "<<self.require(tiles - goes <= 1 - APART - _NEVER * streams)>>"),
    Term(_NETWORK, "row", "<<self.require(late >= several + streams - 1)>>"),
    Term(_NETWORK, "log", """self.power("one step", self.log_compute() - <<steps>>, self.cycles_unit, given)"""),
    Term(
        _NETWORK, "row", "<<self.require(low >= sum((step - _LEAST_STEP) * chosen[step] for step in steps) - APART)>>"
    ),
)

LEAST = (
    Term(_LEAST, "amount", "cycles = float(ceil(<<layer.macs>> / units))"),
    Term(
        _LEAST,
        "amount",
        """cycles = max(cycles, <<(words["weights"] + words["inputs"])>> / top.read_bandwidth_words_per_cycle)""",
    ),
    Term(_LEAST, "amount", """cycles = max(cycles, (<<words["weights"]>> + words["inputs"]) / top"""),
    Term(_LEAST, "amount", """cycles = max(cycles, (words["weights"] + <<words["inputs"]>>) / top"""),
    Term(_LEAST, "amount", """cycles = max(cycles, <<words["outputs"]>> / top.write_bandwidth_words_per_cycle)"""),
    Term(_LEAST, "amount", "return <<layer.macs * mac_energy_pj(architecture)>> + words * each"),
    Term(_LEAST, "amount", "return layer.macs * mac_energy_pj(architecture) + <<words * each>>"),
    Term(_LEAST, "amount", "energy = <<layer.macs * mac_energy_pj(architecture)>>"),
    Term(
        _LEAST,
        "amount",
        "energy += <<words[tensor] * vector_access_energy_pj(architecture, outermost) / top.block_words>>",
    ),
    Term(
        _LEAST,
        "amount",
        "<<layer.macs / below>> * vector_access_energy_pj(architecture, inner)",
    ),
    Term(_LEAST, "other", "or <<tensor not in keeping.always[inner]>>:", {"always": "False"}),
    Term(_LEAST, "other", 'return <<{>>"latency": cycles, ', {}),
    Term(_LEAST, "amount", "if <<product * outside>> <= most:", only=("/ 1.2",)),
    Term(_LEAST, "amount", "if <<product * inner>> > most:", only=("/ 1.2",)),
)

LOADS = (
    Term(_LOADS, "amount", "number = <<flits(noc, item.n_bytes)>> * item.count"),
    Term(_LOADS, "amount", "injected[item.source] += <<number>>"),
    Term(_LOADS, "amount", "ejected[ports] += <<number>>"),
    Term(_LOADS, "amount", "links[link] += <<number>>"),
    Term(_LOADS, "amount", "<<-(-item.n_bytes // access_bytes)>> * item.count"),
    Term(
        _LOADS,
        "other",
        """(item.kind == "fill" and item.source == dram)<< or (item.kind == "final" and item.destinations == (dram,))>>""",
        {"reads alone": ""},
    ),
    Term(_LOADS, "amount", "cycles = max(cycles, <<ceil(words / Fraction(bandwidth))>>)"),
    Term(_LOADS, "amount", "read = <<sum(flow.sent_words for flow in traffic.flows if flow.source == node)>>"),
    Term(
        _LOADS, "amount", "written = <<sum(flow.received_words for flow in traffic.flows if flow.destination == node)>>"
    ),
    Term(_LOADS, "amount", "latency = <<traffic.steps * traffic.architecture.pe.pipeline_latency_cycles>>"),
    Term(_LOADS, "amount", "compute = <<traffic.compute_cycles>> + latency"),
    Term(_LOADS, "amount", "dram_cycles = <<ceil(each * dram.cycles_per_access)>>"),
    Term(_LOADS, "amount", "each = <<-(-dram_accesses(traffic, dram.access_bytes) // dram.channels)>>"),
)

MUTANTS = {
    "program": PROGRAM,
    "orders": ORDERS,
    "links": LINKS,
    "space": SPACE,
    "network": NETWORK,
    "floor": BATCH,
    "least": LEAST,
    "machine": LOADS,
}

_ROWS = "tests/cosa/test_bound_rows.py"
_NETWORK_ROWS = "tests/cosa/test_bound_rows_network.py"
_MACHINE = "tests/cosa/test_analytical_loads.py"

TESTS = {
    "program": (_ROWS,),
    "orders": (_ROWS, _NETWORK_ROWS),
    "links": (_ROWS,),
    "space": (_ROWS,),
    "network": (_NETWORK_ROWS,),
    "floor": ("tests/nocsim/test_floor_rows.py",),
    "least": (
        "tests/cosa/test_bound_least.py",
        "tests/cosa/test_opening.py::test_the_most_mac_units_are_those_of_all_ways",
    ),
    "machine": (
        f"{_MACHINE}::test_each_resource_by_hand",
        f"{_MACHINE}::test_every_port_and_link_carries_what_the_simulator_carries",
        f"{_MACHINE}::test_no_run_is_below_the_bound",
    ),
}
"""The tests that must notice, by group; they run in this order until one fails."""
