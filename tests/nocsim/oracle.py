"""A brute-force walk of a loop nest that keeps the set of words each node holds: the oracle of the words moved.

It knows nothing of tiles, shifts or visits. It steps through every temporal iteration, collects for every PE the words
that the loops inside its buffers touch, and compares with what the node held before. Whether an output is finished is
found by counting the MACs that have gone into it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product

from cosa.model.schedule import Schedule

Words = frozenset[tuple[int, ...]]
Key = tuple[str, str, str, str]


def touched(schedule: Schedule, tensor: str, index: dict[str, int]) -> tuple[int, ...]:
    layer = schedule.layer
    i = defaultdict(int, index)
    if tensor == "weights":
        return i["G"], i["K"], i["C"], i["R"], i["S"]
    if tensor == "outputs":
        return i["N"], i["G"], i["K"], i["P"], i["Q"]
    width = i["P"] * layer.stride_w + i["R"] * layer.dilation_w
    height = i["Q"] * layer.stride_h + i["S"] * layer.dilation_h
    return i["N"], i["G"], i["C"], width, height


def count_words(schedule: Schedule) -> dict[Key, tuple[int, int]]:
    """(sent, received) words of each (tensor, source, destination, kind)."""
    arch, nest = schedule.architecture, schedule.nest[::-1]
    mesh = arch.mesh_level
    loops = []  # outer to inner: level, dim, bound, kind, axis, stride
    strides: dict[str, int] = defaultdict(lambda: 1)
    for level, entry in enumerate(nest):
        for loop in reversed(entry.loops):
            loops.append((level, loop.dim, loop.bound, loop.kind, loop.axis, strides[loop.dim]))
            strides[loop.dim] *= loop.bound
    loops.reverse()

    temporal = [x for x in loops if x[3] == "temporal"]
    pes = _pe_offsets(loops, mesh, arch.fanout(mesh)[0])
    tensors = ("weights", "inputs", "outputs")
    store = {t: max((i for i in range(mesh) if t in nest[i].keeps), default=-1) for t in tensors}
    if arch.machine.weights_refetch == "published" and store["weights"] >= 0:
        store["weights"] = mesh - 1  # what all loops of a PE want comes at once, whatever the buffer holds
    chip = {t: [i for i in range(mesh, len(nest) - 1) if t in nest[i].keeps] for t in tensors}
    names = {i: f"chip:{entry.level}" for i, entry in enumerate(nest)} | {mesh: "global_buffer", len(nest) - 1: "dram"}
    # Where each tensor's words come from and go to, for PEs (-1) and every level on the chip.
    outside = {
        (t, i): names[o] for t in tensors for i, o in zip([-1, *chip[t]], [*chip[t], len(nest) - 1], strict=True)
    }

    def words_at(tensor: str, level: int, node: int, base: dict[str, int]) -> Words:
        """Words touched by loops at `level` and further in, and by spatial loops up to `node`."""
        inside = [x for x in loops if x[0] <= level or (x[0] <= node and x[3] == "spatial")]
        found = set()
        for values in product(*(range(x[2]) for x in inside)):
            index = dict(base)
            for x, value in zip(inside, values, strict=True):
                index[x[1]] = index.get(x[1], 0) + value * x[5]
            found.add(touched(schedule, tensor, index))
        return frozenset(found)

    sent: Counter[Key] = Counter()
    received: Counter[Key] = Counter()
    held: dict[tuple[str, object], Words] = {}
    done: Counter[tuple[int, ...]] = Counter()  # MACs that have gone into each output word so far
    complete = schedule.layer.R * schedule.layer.S * schedule.layer.C
    halo = arch.machine.halo_reuse
    cache: dict[tuple[str, int, int, tuple[tuple[str, int], ...]], Words] = {}

    def tile(tensor: str, level: int, node: int, base: dict[str, int]) -> Words:
        key = (tensor, level, node, tuple(sorted(base.items())))
        if key not in cache:
            cache[key] = words_at(tensor, level, node, base)
        return cache[key]

    def base_of(level: int, indices: list[int], offsets: dict[str, int]) -> dict[str, int]:
        """Loop indices from the temporal loops outside `level`, and the PE's place."""
        base = dict(offsets)
        for x, value in zip(temporal, indices, strict=True):
            if x[0] > level:
                base[x[1]] = base.get(x[1], 0) + value * x[5]
        return base

    def leave(words: Words, node: object, where: str, to: str, copies: int) -> None:
        kinds = {"final" if done[w] == complete else "partial" for w in words}
        assert len(kinds) == 1, "a tile leaves finished or unfinished as a whole"
        key = ("outputs", where, to, kinds.pop())
        sent[key] += len(words)
        received[key] += len(words)
        if where == "pe" and copies > 1:
            sent["outputs", "pe", "pe", "reduction"] += (copies - 1) * len(words)
            received["outputs", "pe", "pe", "reduction"] += (copies - 1) * len(words)

    def come(words: Words, frm: str, to: str) -> None:
        again = [w for w in words if done[w]]
        if again:
            assert len(again) == len(words)
            sent["outputs", frm, to, "reload"] += len(words)
            received["outputs", frm, to, "reload"] += len(words)

    first_home = outside["outputs", -1]
    counted_inside = [x for x in loops if x[0] <= store["outputs"] or x[3] == "spatial"]
    group_sizes: dict[Words, int] = {}
    pe_outputs: dict[int, Words] = {}
    for values in product(*(range(x[2]) for x in temporal)):
        indices = list(values)
        # Outputs first: what is given up leaves before anything of this iteration is added.
        new_outputs = {
            pe: tile("outputs", store["outputs"], mesh - 1, base_of(store["outputs"], indices, offsets))
            for pe, offsets in pes.items()
        }
        # MACs that take words directly hold nothing from one iteration to the next.
        direct = store["outputs"] < 0
        leaving = {w for pe, w in pe_outputs.items() if w != new_outputs[pe] or direct}
        for words in sorted(leaving, key=sorted):
            leave(words, None, "pe", first_home, group_sizes[words])
        arriving = {w for pe, w in new_outputs.items() if w != pe_outputs.get(pe) or direct}
        changed = []
        for level in chip["outputs"]:
            mine = tile("outputs", level, level, base_of(level, indices, {}))
            old = held.get(("outputs", level))
            if old != mine:
                if old is not None:
                    leave(old, None, names[level], outside["outputs", level], 1)
                changed.append(level)
                held["outputs", level] = mine
        for level in reversed(changed):
            come(held["outputs", level], outside["outputs", level], names[level])
        for words in sorted(arriving, key=sorted):
            come(words, first_home, "pe")
        pe_outputs = new_outputs
        group_sizes = dict(Counter(new_outputs.values()))

        for tensor in ("weights", "inputs"):
            near = outside[tensor, -1]
            for level in chip[tensor]:
                mine = tile(tensor, level, level, base_of(level, indices, {}))
                old = held.get((tensor, level), frozenset())
                if mine != old:
                    fresh = len(mine - old) if halo else len(mine)
                    sent[tensor, outside[tensor, level], names[level], "fill"] += fresh
                    received[tensor, outside[tensor, level], names[level], "fill"] += fresh
                    held[tensor, level] = mine
            groups: dict[Words, set[Words]] = {}
            for pe, offsets in pes.items():
                mine = tile(tensor, store[tensor], mesh - 1, base_of(store[tensor], indices, offsets))
                old = held.get((tensor, "pe", pe), frozenset()) if store[tensor] >= 0 else frozenset()
                if mine != old:
                    fresh_words = mine - old if halo else mine
                    received[tensor, near, "pe", "fill"] += len(fresh_words)
                    groups.setdefault(mine, set()).add(frozenset(fresh_words))
                    held[tensor, "pe", pe] = mine
            for parts in groups.values():
                assert len(parts) == 1, "PEs with the same tile need the same words"
                sent[tensor, near, "pe", "fill"] += len(next(iter(parts)))

        # The MACs of this iteration, over all PEs.
        if all(v == 0 for x, v in zip(temporal, indices, strict=True) if x[0] <= store["outputs"]):
            for inner in product(*(range(x[2]) for x in counted_inside)):
                index = base_of(store["outputs"], indices, {})
                for x, value in zip(counted_inside, inner, strict=True):
                    index[x[1]] = index.get(x[1], 0) + value * x[5]
                done[touched(schedule, "outputs", index)] += 1
    for words in sorted(set(pe_outputs.values()), key=sorted):
        leave(words, None, "pe", first_home, group_sizes[words])
    for level in chip["outputs"]:
        leave(held["outputs", level], None, names[level], outside["outputs", level], 1)
    return {key: (sent[key], received[key]) for key in sent if sent[key]}


def _pe_offsets(loops: list[tuple], mesh: int, columns: int) -> dict[int, dict[str, int]]:
    """What each PE in use adds to the loop indices."""
    spatial = [x for x in loops if x[0] == mesh and x[3] == "spatial"]
    places = {}
    for values in product(*(range(x[2]) for x in spatial)):
        place = {"x": 0, "y": 0, "row_major": 0}
        size = {"x": 1, "y": 1, "row_major": 1}
        offsets: dict[str, int] = {}
        for x, value in reversed(list(zip(spatial, values, strict=True))):
            place[x[4]] += value * size[x[4]]
            size[x[4]] *= x[2]
            offsets[x[1]] = offsets.get(x[1], 0) + value * x[5]
        places[place["row_major"] + place["x"] + place["y"] * columns] = offsets
    return places
