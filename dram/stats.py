"""What a DRAM channel reports of itself."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class DramStats:
    """Counts since the start; of one channel or, added up, of several.

    A column command is a *hit* if its row was already open for an earlier one, else its ACT was a *miss* (the bank was
    closed) or a *conflict* (another row was closed for it). Energy is in pJ, and 0 without currents.
    """

    reads: int = 0
    writes: int = 0
    row_hits: int = 0
    row_misses: int = 0
    row_conflicts: int = 0
    activates: int = 0
    precharges: int = 0
    refreshes: int = 0
    lost_refreshes: int = 0
    forwarded_reads: int = 0
    merged_writes: int = 0
    bus_busy_cycles: int = 0
    """DRAM clocks in which the data bus carried data."""
    total_cycles: int = 0
    """DRAM clocks simulated."""
    rank_active_cycles: int = 0
    """Clocks, summed over ranks, with a row open or a refresh under way."""
    rank_standby_cycles: int = 0
    rank_powerdown_cycles: int = 0
    energy_background_pj: float = 0.0
    energy_burst_pj: float = 0.0
    energy_activate_pj: float = 0.0
    energy_refresh_pj: float = 0.0

    @property
    def energy_pj(self) -> float:
        """Energy of everything."""
        return self.energy_background_pj + self.energy_burst_pj + self.energy_activate_pj + self.energy_refresh_pj

    @property
    def row_hit_rate(self) -> float:
        """Hits by column commands; 0 before the first one."""
        columns = self.row_hits + self.row_misses + self.row_conflicts
        return self.row_hits / columns if columns else 0.0

    def __add__(self, other: "DramStats") -> "DramStats":
        """Two channels together; ``total_cycles`` is that of the longer one."""
        values = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        values["total_cycles"] = max(self.total_cycles, other.total_cycles)
        return DramStats(**values)
