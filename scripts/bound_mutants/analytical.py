"""Terms of the program on the analytical model."""

from __future__ import annotations

from bound_mutants.terms import BOTH, FILE_PROGRAM, LARGE, TOLERANCE, UNPROVEN, WHOLE, Term

PROGRAM = (
    # capacities
    Term(FILE_PROGRAM, "amount", "room = log2(<<words>> - len(always - {tensor}) + 0.5)", only=BOTH),
    Term(
        FILE_PROGRAM,
        "amount",
        "room = log2(words - <<len(always - {tensor})>> + 0.5)",
        alike=dict.fromkeys(("/ 1.2", "dropped"), "the row of the sum of tiles bounds them, too")
        | {"x 1.2": "of two words at most not the half that is a tolerance"},
    ),
    Term(
        FILE_PROGRAM,
        "amount",
        "self.require(tile <= room + <<excess>> * (1 - kept))",
        alike={"x 1.2": LARGE},
    ),
    Term(FILE_PROGRAM, "amount", "self.require(sum(parts) <= <<1>> + 0.5 / words)"),
    Term(
        FILE_PROGRAM,
        "amount",
        "self.require(sum(parts) <= 1 + <<0.5 / words>>)",
        alike=dict.fromkeys((*BOTH, "dropped"), TOLERANCE),
    ),
    # words
    Term(FILE_PROGRAM, "log", "return fetched + <<groups>> - self.links"),
    Term(FILE_PROGRAM, "log", "return <<fetched>> + groups - self.links", only=BOTH),
    Term(FILE_PROGRAM, "log", "fetched = <<self.links.log_mac_visits(tensor)>> if child < 0", only=BOTH),
    Term(FILE_PROGRAM, "log", "return fetched + groups - <<self.links.log_saved(tensor, child, level)>>"),
    Term(
        FILE_PROGRAM, "log", "return <<self.orders.log_fetched(tensor, level)>> - self.links.log_filled(tensor, level)"
    ),
    Term(
        FILE_PROGRAM, "log", "return self.orders.log_fetched(tensor, level) - <<self.links.log_filled(tensor, level)>>"
    ),
    Term(
        FILE_PROGRAM,
        "other",
        "outside = range(<<above + 1>>, len(self.architecture.levels))",
        {"the level itself, too": "above", "one less": "above + 2"},
    ),
    Term(
        FILE_PROGRAM,
        "log",
        """return <<sum((self.log_loops(DIMS, level, ("temporal",)) for level in self._levels), 0.0)>>""",
    ),
    Term(FILE_PROGRAM, "amount", """return <<float(box_words(self.layer, "outputs", self.layer.bounds))>>"""),
    Term(
        FILE_PROGRAM,
        "amount",
        "moved >= <<touched_words(self.layer, tensor, self.layer.bounds)>> * each",
        alike=dict.fromkeys(("/ 1.2", "dropped"), WHOLE),
    ),
    # energy
    Term(FILE_PROGRAM, "amount", "total: Expression = <<macs>> / self.energy_unit_pj"),
    Term(
        FILE_PROGRAM,
        "amount",
        "per_word = <<vector_access_energy_pj(self.architecture, level)>> / entry.block_words",
    ),
    Term(
        FILE_PROGRAM,
        "other",
        "per_word = vector_access_energy_pj(self.architecture, level)<< / entry.block_words>>",
        {"for each word": ""},
    ),
    Term(FILE_PROGRAM, "log", "words = <<self.log_sent(tensor, child, level)>> + arrays"),
    Term(FILE_PROGRAM, "log", "words = self.log_sent(tensor, child, level) + <<arrays>>"),
    Term(
        FILE_PROGRAM,
        "amount",
        """total = total - <<self.links.words_rounded(
                    tensor, range(child + 2, level + 1), _ROUNDED_READ * most_arrays / unit, arc
                )>>""",
        alike=dict.fromkeys(("/ 1.2", "dropped"), UNPROVEN),
    ),
    Term(FILE_PROGRAM, "amount", "total = total + <<moved>>"),
    Term(
        FILE_PROGRAM, "log", "words, kept = self.log_filled(tensor, level) + <<arrays>>, self.keeps.kept[level, tensor]"
    ),
    Term(
        FILE_PROGRAM,
        "amount",
        'fills = <<self.power(f"{name} fills", words, unit, kept)>>',
    ),
    Term(
        FILE_PROGRAM,
        "amount",
        "total = total - <<self.links.words_rounded(tensor, network, _ROUNDED_FILL * most_arrays / unit, kept)>>",
    ),
    Term(
        FILE_PROGRAM,
        "amount",
        'total + (\n                    <<self._but_first(f"{name} old", level, words, fills, kept, unit)>> if tensor',
    ),
    Term(
        FILE_PROGRAM,
        "amount",
        """total = total + <<sum(
                    self._but_first(f"{name} reads", level, words, moved, arc, unit) for words, moved, arc in sent
                )>>""",
    ),
    Term(FILE_PROGRAM, "amount", "most = log2(<<self.architecture.instances(level) // cluster>>)", only=BOTH),
    Term(FILE_PROGRAM, "row", "<<self.require(arrays >= most * full)>>"),
    Term(FILE_PROGRAM, "row", "<<self.require(arrays >= used - longest * full)>>"),
    Term(
        FILE_PROGRAM,
        "row",
        "<<self.require(used >= most * full)>>",
        alike={"dropped": "the smaller of the two is the less, whichever is said to be"},
    ),
    Term(
        FILE_PROGRAM,
        "amount",
        "longest = log2(<<self.architecture.instances(level)>> + 0.5)",
        only=BOTH,
        alike=dict.fromkeys(BOTH, LARGE),
    ),
    Term(
        FILE_PROGRAM,
        "other",
        "return <<self.architecture.instances(level) == 1 and not self.selectors>>",
        {"always": "not self.selectors", "never": "False"},
    ),
    Term(
        FILE_PROGRAM,
        "log",
        "return <<self.log_extent(relevant, self._levels[-1])>> - self.log_spatial(relevant, level)",
    ),
    Term(
        FILE_PROGRAM,
        "log",
        "return self.log_extent(relevant, self._levels[-1]) - <<self.log_spatial(relevant, level)>>",
        only=("dropped",),
    ),
    Term(
        FILE_PROGRAM,
        "amount",
        """return words - <<self.output_words()>> / unit * given
        # log2""",
    ),
    Term(FILE_PROGRAM, "log", "ratio = log_words - <<self._log_arrays(level)>> - self._log_distinct(level)"),
    Term(
        FILE_PROGRAM,
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
    Term(FILE_PROGRAM, "row", "<<self.require(ratio <= step - APART + longest * reached)>>"),
    Term(
        FILE_PROGRAM,
        "amount",
        "self.require(ratio <= step - APART + <<longest>> * reached)",
        alike=dict.fromkeys(BOTH, LARGE),
    ),
    Term(FILE_PROGRAM, "amount", "here = log2(1 - <<2.0**-step>>)"),
    Term(FILE_PROGRAM, "amount", "share = share + <<(here - previous)>> * reached"),
    Term(FILE_PROGRAM, "log", "return self.power(name, log_words + <<share>>, unit, given)"),
    # cycles
    Term(
        FILE_PROGRAM,
        "amount",
        """rows.add(cycles >= <<self.power("compute", self.log_compute(), self.cycles_unit)>>)""",
    ),
    Term(FILE_PROGRAM, "amount", "unit = self.cycles_unit * <<bandwidth>>", only=BOTH),
    Term(FILE_PROGRAM, "amount", "words = words + <<self._words(tensor, level, direction, unit)>>"),
    Term(
        FILE_PROGRAM,
        "amount",
        "total = total - <<self.links.words_rounded(tensor, networks, _ROUNDED_READ / unit, arc)>>",
    ),
    Term(
        FILE_PROGRAM,
        "amount",
        """fills, kept = self.log_filled(tensor, level), self.keeps.kept[level, tensor]
                total = total + <<self._moved(f"{name} fills", tensor, level, fills, unit, kept)>>""",
    ),
    Term(
        FILE_PROGRAM,
        "amount",
        "total = total - <<self.links.words_rounded(tensor, network, _ROUNDED_FILL / unit, kept)>>",
    ),
    Term(FILE_PROGRAM, "amount", "total = total + <<sum(self.power(name, words, unit, arc) for words, arc in sent)>>"),
    Term(
        FILE_PROGRAM,
        "amount",
        "return total + <<sum(self._moved(name, tensor, level, words, unit, arc) for words, arc in sent)>>",
    ),
    Term(
        FILE_PROGRAM, "amount", "return self.power(name, words, unit, given) - <<self.output_words()>> / unit * given"
    ),
    Term(
        FILE_PROGRAM,
        "row",
        "<<self.require(words - self._log_distinct(level) <= 1 - APART + self._log_longest() * again)>>",
    ),
    Term(
        FILE_PROGRAM,
        "log",
        "self.require(words - <<self._log_distinct(level)>> <= 1 - APART + self._log_longest() * again)",
    ),
    Term(FILE_PROGRAM, "log", "return self.power(name, words - <<1>> - 60 * (1 - again), unit, given)"),
)
