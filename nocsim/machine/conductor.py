"""Joins SimPy with the compiled islands: lock-step up to the next thing that any process can see.

Order within a cycle: the mesh ejects, then finished DRAM accesses are reported, then processes run (SimPy's order of
events), then injections, DRAM edges that fall in the cycle, and routers. So whatever a process does in a cycle takes
effect in that cycle.

No island may run past something another one has to say. The DRAM tells, without moving, a cycle before which none of
its accesses becomes visible (a column command fixes the end of its burst); the mesh then runs up to that cycle or to
SimPy's next event or stops earlier with a report of its own, and the DRAM follows to where the mesh has stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import simpy

from nocsim.errors import SimulationError
from nocsim.machine.memory import Access, DramMemory
from nocsim.machine.network import MeshNetwork
from nocsim.mesh.mesh import Mesh, Report

_AFTER_ALL = 2
"""SimPy priority behind urgent (0) and normal (1) events of the same cycle."""
_URGENT = 0
_NEVER = 2**62


class _Call:
    """The least that SimPy takes for an event: something to call. A turn needs no value and nobody waits for it."""

    __slots__ = ("_ok", "_value", "callbacks")

    def __init__(self, what: Callable[[Any], None]) -> None:
        self.callbacks: list[Callable[[Any], None]] | None = [what]
        self._ok = True
        self._value = None


class Conductor:
    """Runs mesh and DRAM between SimPy's events. Sleeps when nothing is in flight; `wake` on every submission."""

    def __init__(self, env: simpy.Environment) -> None:
        self._env = env
        self._mesh: Mesh | None = None
        self._network: MeshNetwork | None = None
        self._memory: DramMemory | None = None
        self._awake = False
        self.last_cycle = _NEVER
        """The islands run no further than this (a limit of the run)."""
        self._reports: list[Report] = []
        self._done: list[Access] = []

    def conduct(self, mesh: Mesh | None, network: MeshNetwork | None, memory: DramMemory | None) -> None:
        """Take the islands; either may be missing (an ideal network or memory needs no conductor)."""
        self._mesh, self._network, self._memory = mesh, network, memory

    def wake(self) -> None:
        """Take a turn at the end of this cycle."""
        if not self._awake:
            self._awake = True
            self._at(self._turn, 0, _AFTER_ALL)

    def _at(self, what: Callable[[Any], None], delay: int, priority: int) -> None:
        self._env.schedule(_Call(what), priority, delay)

    def _turn(self, _: Any) -> None:
        mesh, memory = self._mesh, self._memory
        now = self._env.now
        if now >= self.last_cycle:
            return
        horizon = int(min(self._env.peek(), self.last_cycle))
        cycle = now
        reports: list[Report] = []
        done: list[Access] = []
        while cycle < horizon and not reports and not done:
            first_memory = memory.earliest_visible_cycle() if memory else None
            mesh_idle = mesh is None or mesh.idle
            if first_memory is None:
                if mesh_idle:
                    self._awake = False
                    return
                until = horizon
            else:
                # A DRAM that had nothing to do stands at an earlier cycle, and its bound may lie there.
                until = min(horizon, max(first_memory, cycle + 1))
            if mesh is None or mesh_idle:
                cycle = until
            else:
                cycle = mesh.run(until)
                reports = mesh.take_reports()
            if cycle >= _NEVER:
                assert mesh is not None
                raise SimulationError(f"deadlock in the mesh at cycle {now}: {mesh.describe_stall()}")
            if memory and first_memory is not None:
                done = memory.advance(cycle)
        if done or reports:
            self._reports, self._done = reports, done
            self._at(self._deliver, cycle - now, _URGENT)
        # With nothing seen, the horizon was reached: processes run there, then it is the conductor's turn again.
        self._at(self._turn, cycle - now, _AFTER_ALL)

    def _deliver(self, _: Any) -> None:
        network = self._network
        for kind, number, dst, _cycle in self._reports:
            assert network is not None
            network.report(kind, number, dst)
        for access in self._done:
            access.finish()
