"""What levels keep, in the program: a binary for each choice, and for each tensor the chain of levels that keep it.

The chain is a path from the MACs out to the outermost level. An arc (child, level) is 1 where both keep the tensor and
no level in between does; what flows into a level and out of it is 1 where it keeps the tensor. With the binaries whole
there is one such path, so the arcs need not be binaries.
"""

from __future__ import annotations

from typing import Any

from cosa.mip.quantities import Expression
from cosa.mip.space import Space
from cosa.model.keeping import Keeping, as_array
from cosa.model.layer import TENSORS, Tensor


class Keeps:
    """Choices of a space: `kept` by (level, tensor) and `arcs` by tensor and (child, level); 1 or expressions.

    Child -1 are the MACs. What is not there is 0.
    """

    def __init__(self, space: Space, keeping: Keeping) -> None:
        self.space, self.keeping = space, keeping
        self.kept: dict[tuple[int, Tensor], Expression] = {}
        self.arcs: dict[Tensor, dict[tuple[int, int], Expression]] = {}
        for tensor in TENSORS:
            for level, most in enumerate(keeping.may):
                if tensor in most:
                    always = tensor in keeping.always[level]
                    self.kept[level, tensor] = 1 if always else space.new_variable("binary")
            self._add_arcs(tensor)

    def _add_arcs(self, tensor: Tensor) -> None:
        places = [-1, *(level for level, most in enumerate(self.keeping.may) if tensor in most)]
        always = [place for place in places if place < 0 or tensor in self.keeping.always[place]]
        found: dict[tuple[int, int], Expression] = {}
        for at, child in enumerate(places):
            for level in places[at + 1 :]:
                if any(child < stop < level for stop in always):
                    break
                forced = child in always and level == places[at + 1] and level in always
                found[child, level] = 1 if forced else self.space.new_variable("continuous", 1.0)
        self.arcs[tensor] = found
        for place in places:
            kept = 1 if place < 0 else self.kept[place, tensor]
            for end in (0, 1):
                flow = [arc for ends, arc in found.items() if ends[end] == place]
                if flow and not all(isinstance(arc, int) for arc in flow):
                    self.space.require(sum(flow) == kept)

    def into(self, tensor: Tensor, level: int) -> list[tuple[int, Expression]]:
        """(child, arc) of every arc of a tensor into a level."""
        return [(child, arc) for (child, outer), arc in self.arcs[tensor].items() if outer == level]

    # After solving

    def decode(self) -> Any:
        """What the solution keeps, bool [level, tensor]; None where nothing was to be chosen."""
        if self.keeping.is_fixed:
            return None
        found = as_array(self.keeping.always)
        for level, tensor in self.keeping.free:
            found[level, TENSORS.index(tensor)] = self.kept[level, tensor].value > 0.5
        return found
