"""Terms of loop orders, of what neighbours save, and of the space of tilings."""

from __future__ import annotations

from bound_mutants.terms import BOTH, FILE_LINKS, FILE_ORDERS, FILE_SPACE, LARGE, UNPROVEN, Term

ORDERS = (
    # modes
    Term(FILE_ORDERS, "row", "<<space.require(sum(self.modes[level, tensor] for tensor in TENSORS) == 1)>>"),
    Term(FILE_ORDERS, "gate", "<<self.space.require(self.sliding[level, dim] <= self.clear(level, inside))>>"),
    Term(
        FILE_ORDERS,
        "gate",
        "<<self.space.require(self.sliding[level, dim] <= 1 - sum(self.modes[level, tensor] for tensor in blocking))>>",
    ),
    Term(FILE_ORDERS, "row", """<<blocking = (*blocking, "inputs")>>"""),
    Term(
        FILE_ORDERS,
        "row",
        "<<self.space.require(sum(self.sliding[level, dim] for dim in dims) <= 1)>>",
    ),
    Term(FILE_ORDERS, "row", "<<self.space.require(count <= multiplicity - multiplicity * binary)>>"),
    # visits
    Term(
        FILE_ORDERS,
        "log",
        """return <<sum((self.space.log_loops(DIMS, level, ("temporal",)) for level in outside), 0.0)>>""",
    ),
    Term(FILE_ORDERS, "log", """total = total + <<space.log_loops(moving, level, ("temporal",))>>"""),
    Term(FILE_ORDERS, "log", "total = total + <<counted>>"),
    Term(FILE_ORDERS, "row", "<<space.require(counted >= loops - longest * skipped)>>"),
    Term(FILE_ORDERS, "row", "<<space.require(counted <= loops)>>"),
    Term(
        FILE_ORDERS,
        "amount",
        "space.require(counted >= loops - <<longest>> * skipped)",
        alike={"x 1.2": LARGE},
    ),
    Term(FILE_ORDERS, "gate", "<<space.require(skipped <= self.clear(level, inside))>>"),
    Term(
        FILE_ORDERS,
        "gate",
        "<<space.require(skipped <= self.modes[level, tensor] + self.clear(level, RELEVANT[tensor]))>>",
    ),
    Term(
        FILE_ORDERS,
        "other",
        "space.require(skipped <= self.modes[level, tensor]<< + self.clear(level, RELEVANT[tensor])>>)",
        {"dropped": ""},
        alike={"dropped": "a level with loops of one group alone has that mode for nothing: no other has loops there"},
    ),
    Term(FILE_ORDERS, "gate", "<<space.require(skipped <= self.clear(inner, RELEVANT[tensor]))>>"),
    Term(FILE_ORDERS, "gate", "<<space.require(skipped <= given)>>"),
    # words
    Term(FILE_ORDERS, "log", "fetched = self.log_visits(tensor, child) + <<tile>>"),
    Term(FILE_ORDERS, "log", "fetched = <<self.log_visits(tensor, child)>> + tile"),
    Term(FILE_ORDERS, "log", "return fetched - <<self._credit(child)>>"),
    Term(FILE_ORDERS, "log", """self._touched[level] = <<space.log_extent(("C", "N", "G"), level)>> + sum("""),
    Term(FILE_ORDERS, "log", "<<log_touched(space, axis, level)>> for axis in sliding_axes(space.layer)"),
    # sliding windows
    Term(FILE_ORDERS, "gate", "<<space.require(gain <= largest * slides)>>"),
    Term(
        FILE_ORDERS,
        "gate",
        "<<space.require(gain <= sum(gains[pair] * table[pair] for pair in table if gains[pair]))>>",
    ),
    Term(FILE_ORDERS, "gate", "<<space.require(gain <= sweep)>>"),
    Term(FILE_ORDERS, "row", "<<space.require(gain <= slope * sweep + offset)>>"),
    Term(FILE_ORDERS, "amount", "return -log2(<<1 / steps>> + (1 - 1 / steps) * strip) - slope * log2(steps)"),
    Term(FILE_ORDERS, "amount", "return -log2(1 / steps + <<(1 - 1 / steps) * strip>>) - slope * log2(steps)"),
    Term(FILE_ORDERS, "amount", "return -log2(1 / steps + (1 - 1 / steps) * strip) - <<slope * log2(steps)>>"),
    Term(FILE_ORDERS, "amount", "gains = {pair: <<log2(self._gain(axis, dim, pair, 1))>> for pair in table}"),
    Term(FILE_ORDERS, "amount", "total = total + <<gain>>"),
    Term(
        FILE_ORDERS,
        "row",
        """<<space.require(sum(allowed) + (back if self.rule == "timeloop" else 0) <= 1)>>""",
    ),
    Term(FILE_ORDERS, "amount", "self._credits[child] = total + <<back>>"),
    Term(FILE_ORDERS, "gate", "<<space.require(here <= loops)>>"),
    Term(FILE_ORDERS, "gate", """<<space.require(here <= most * self.clear(inner, frozenset(("C", "N", "G"))))>>"""),
    Term(FILE_ORDERS, "gate", "<<space.require(here <= own + most * other)>>"),
    Term(
        FILE_ORDERS,
        "amount",
        'other = 1 - self.modes[level, "outputs"] + <<self.clear(level, frozenset(("C",)))>>',
        alike=dict.fromkeys(BOTH, "what it allows is longer than any sweep that a gain asks for"),
    ),
    Term(FILE_ORDERS, "amount", "total = total + <<here>>"),
    Term(FILE_ORDERS, "log", """own = <<space.weighted(outside, (dim,), ("temporal",), log2)>>"""),
    Term(
        FILE_ORDERS,
        "amount",
        "return own + <<log2(space.longest(partner))>> * goes_on",
        alike={"/ 1.2": UNPROVEN},
    ),
    Term(
        FILE_ORDERS,
        "gate",
        """<<space.require(goes_on <= space.weighted(outside, (one,), ("temporal",), lambda prime: 1))>>""",
    ),
    Term(FILE_ORDERS, "row", "<<space.require_meeting(goes_on, axis, child, reach=1.5)>>"),
    Term(
        FILE_ORDERS,
        "other",
        "space.require_meeting(goes_on, axis, child, reach=<<1.5>>)",
        {"x 1.2": "1.8", "/ 1.2": "1.25", "as far only": "1.0"},
    ),
    # back and forth
    Term(FILE_ORDERS, "log", """return visits - <<self._back_and_forth(child)>> if tensor == "inputs" """.rstrip()),
    Term(
        FILE_ORDERS,
        "gate",
        """<<space.require(both <= space.weighted(outside, (dim,), ("temporal",), lambda prime: 1))>>""",
    ),
    Term(
        FILE_ORDERS, "gate", "<<space.require(both <= sum(self._stays_innermost(child, level) for level in outside))>>"
    ),
    Term(FILE_ORDERS, "row", "<<space.require_meeting(both, axis, child)>>"),
    Term(FILE_ORDERS, "amount", "found.append(<<both>>)"),
    Term(FILE_ORDERS, "row", "<<space.require(sum(found) <= 1)>>"),
    Term(
        FILE_ORDERS,
        "gate",
        """<<space.require(here <= space.weighted((level,), GROUPS["inputs"], ("temporal",), lambda prime: 1))>>""",
    ),
    Term(FILE_ORDERS, "gate", """<<space.require(here <= self.modes[level, "inputs"])>>"""),
    Term(FILE_ORDERS, "gate", """<<space.require(here <= self.clear(inner, RELEVANT["inputs"]))>>"""),
    # slides
    Term(FILE_ORDERS, "gate", "<<self.space.require(here <= self.sliding[level, dim])>>"),
    Term(
        FILE_ORDERS,
        "gate",
        """<<self.space.require(here <= self.space.weighted((level,), (dim,), ("temporal",), lambda prime: 1))>>""",
    ),
    Term(FILE_ORDERS, "gate", "<<self.space.require(here <= self.clear(inner, moving))>>"),
    Term(FILE_ORDERS, "gate", "<<self.space.require(slides <= sum(at.values()))>>"),
    Term(
        FILE_ORDERS,
        "other",
        """moving = <<frozenset(DIMS) if self.rule == "timeloop" else RELEVANT["inputs"]>>""",
        {"all loops": "frozenset(DIMS)", "those of inputs": """RELEVANT["inputs"]"""},
    ),
    Term(FILE_ORDERS, "row", "<<space.require(count <= multiplicity * (spread + further_in))>>"),
    Term(FILE_ORDERS, "amount", "space.require(count <= multiplicity * (spread + <<further_in>>))", only=("dropped",)),
    Term(FILE_ORDERS, "gate", "<<space.require(gain <= saved + largest * (1 - spread))>>"),
    Term(FILE_ORDERS, "amount", "gains = {pair: <<log2(self._gain(axis, dim, pair, 2))>> for pair in table}"),
    Term(
        FILE_ORDERS,
        "amount",
        "space.require(gain <= saved + <<largest>> * (1 - spread))",
        only=BOTH,
        alike={"x 1.2": LARGE},
    ),
    # groups
    Term(FILE_ORDERS, "log", """total = total + <<space.log_loops(dims, level, ("spatial",))>>"""),
    Term(FILE_ORDERS, "log", """total = total + <<space.log_loops(("C", "N", "G"), level, ("spatial",))>>"""),
    Term(FILE_ORDERS, "log", """total = total + <<space.log_loops(sides, level, ("spatial",))>>"""),
    Term(FILE_ORDERS, "log", "total = total + <<longer>>"),
    Term(FILE_ORDERS, "row", """<<space.require(longer >= space.log_loops((dim,), level, ("spatial",)))>>"""),
    # gains
    Term(FILE_ORDERS, "amount", "return max(1.0, <<span / (step * side_by_side)>>)", only=BOTH),
    Term(
        FILE_ORDERS,
        "other",
        "return max(1.0, span / (step<< * side_by_side>>))",
        {"one alone": ""},
    ),
    Term(
        FILE_ORDERS, "amount", "words: int = <<touched_on_axis(outputs, taps, axis.stride, axis.dilation)>>", only=BOTH
    ),
    Term(
        FILE_ORDERS,
        "other",
        "ways = range(side_by_side, <<max(side_by_side, -(-span // step)) + 1>>)",
        {"the nearest alone": "side_by_side + 1"},
    ),
    Term(FILE_ORDERS, "other", "return words / <<min(new, step * side_by_side)>>", {"positions alone": "new"}),
    Term(FILE_ORDERS, "amount", "return <<words>> / min(new, step * side_by_side)", only=BOTH),
)

LINKS = (
    Term(FILE_LINKS, "other", "if <<self.space.most_instances(0) > 1>>:", {"never": "False"}),
    Term(
        FILE_LINKS,
        "other",
        """if <<tensor != "inputs">>:
            return 0.0
        return self._network(child + 1)""",
        {"all tensors": "False", "none": "True"},
    ),
    Term(
        FILE_LINKS,
        "log",
        "return <<self._network(child + 1).saved>> + sum(",
    ),
    Term(
        FILE_LINKS,
        "log",
        "<<self._network(at).uneven>> for at in range(child + 2, level + 1)",
        alike={"dropped": UNPROVEN},
    ),
    Term(FILE_LINKS, "log", """return <<self._network(child + 1).saved>> if tensor == "inputs" else 0.0"""),
    Term(FILE_LINKS, "gate", "<<self.space.require(rounded <= sum(active))>>", alike={"never": UNPROVEN}),
    Term(
        FILE_LINKS,
        "gate",
        "<<self.space.require(rounded <= given)>>",
        alike={"always": "a power that is not given is 0", "never": UNPROVEN},
    ),
    Term(FILE_LINKS, "gate", """<<space.require(returns <= self._sharing(level, "inputs"))>>"""),
    Term(FILE_LINKS, "gate", "<<space.require(active <= sum(ways.values()) + returns)>>", alike={"never": UNPROVEN}),
    Term(FILE_LINKS, "amount", "saved: Expression = <<returns>>"),
    Term(
        FILE_LINKS,
        "amount",
        """saved = saved + <<self._saved_along(
                axis, level, one, {a: ways[a] + undone[a] for a in self._axes if a != axis}
            )>>""",
    ),
    Term(
        FILE_LINKS,
        "amount",
        "uneven = uneven + <<log2(MOST_UNEVEN)>> * both",
        alike=dict.fromkeys(("/ 1.2", "dropped"), UNPROVEN),
    ),
    Term(FILE_LINKS, "gate", "<<space.require(both <= active)>>", alike={"never": UNPROVEN}),
    Term(FILE_LINKS, "row", "<<space.require(sum(chosen) <= 1)>>"),
    Term(FILE_LINKS, "gate", "<<space.require(saved <= most * given)>>"),
    Term(
        FILE_LINKS,
        "gate",
        """<<space.require(saved <= space.log_loops((axis.outputs, axis.taps), level, ("spatial",)))>>""",
    ),
    Term(
        FILE_LINKS,
        "gate",
        """<<space.require(saved <= visits - space.weighted(outside, alone, ("temporal",), log2) + slack)>>""",
    ),
    Term(FILE_LINKS, "log", """saved <= visits - <<space.weighted(outside, alone, ("temporal",), log2)>> + slack"""),
    Term(
        FILE_LINKS,
        "amount",
        "slack = slack + <<possible * log2(space.longest(other.outputs) * space.longest(other.taps))>>",
        alike={"/ 1.2": UNPROVEN},
    ),
    Term(FILE_LINKS, "amount", "most = <<log2(prod(space.architecture.fanout(level)) + 0.5)>>", alike={"x 1.2": LARGE}),
    Term(
        FILE_LINKS,
        "other",
        """for still, moving in <<(pair, pair[::-1])>>""",
        {"taps moving": "(pair[::-1],)", "outputs moving": "(pair,)"},
    ),
    Term(
        FILE_LINKS,
        "amount",
        """return <<self._meeting((axis.outputs, "temporal", level), (axis.taps, "temporal", level), axis)>>""",
        only=("dropped",),
    ),
    Term(FILE_LINKS, "gate", "<<self.space.require(found <= most)>>"),
    Term(
        FILE_LINKS,
        "other",
        """found = <<self._loops(GROUPS[tensor], "spatial", level)>>
        if""",
        {"dropped": "0.0"},
    ),
    Term(
        FILE_LINKS,
        "other",
        """found = found + <<sum(
                self._both((axis.outputs, "spatial", level), (axis.taps, "spatial", level)) for axis in self._axes
            )>>""",
        {"dropped": "0.0"},
    ),
    Term(FILE_LINKS, "row", "<<self.space.require_meeting(found, axis, min(one[2], other[2]) - 1)>>"),
    Term(
        FILE_LINKS,
        "other",
        "self.space.require_meeting(found, axis, <<min(one[2], other[2]) - 1>>)",
        {"one further in": "min(one[2], other[2]) - 2", "one further out": "min(one[2], other[2])"},
    ),
    Term(FILE_LINKS, "gate", "<<self.space.require(found <= self._loops((dim,), kind, level))>>"),
)

SPACE = (
    Term(FILE_SPACE, "amount", "room = log2(<<(self.longest(partner) - 0.5)>> * reach * back / step)", only=BOTH),
    Term(
        FILE_SPACE,
        "other",
        "room = log2((self.longest(partner) - 0.5) * reach * <<back / step>>)",
        {"without steps": "1"},
    ),
    Term(
        FILE_SPACE,
        "other",
        "(self.longest(partner)<< - 0.5>>)",
        {"dropped": ""},
        alike={"dropped": "a tile is whole: none is as long as half an index less"},
    ),
    Term(FILE_SPACE, "row", "<<self.require(found <= 0)>>"),
    Term(
        FILE_SPACE, "row", "<<self.require(self.log_extent((dim,), level) <= room + (longest - room) * (1 - found))>>"
    ),
    Term(FILE_SPACE, "amount", "<= room + <<(longest - room)>> * (1 - found)", alike={"x 1.2": LARGE}),
    Term(FILE_SPACE, "row", "<<self.require(sum(placed) == wanted)>>"),
    Term(
        FILE_SPACE,
        "amount",
        """self.require(self.log_loops(DIMS, level, ("spatial",)) <= log2(<<instances>> + 0.5))""",
        only=BOTH,
    ),
    Term(FILE_SPACE, "amount", "self.require(self.log_limited(limit) <= log2(<<limit.most>> + 0.5))", only=BOTH),
    Term(FILE_SPACE, "amount", "self.require(product >= log2(<<rule.least>> - 0.5))", only=BOTH),
    Term(FILE_SPACE, "amount", "self.require(product <= log2(<<rule.most>> + 0.5))", only=BOTH),
)
