"""What a DRAM channel reports of itself."""

from dataclasses import dataclass, fields, replace

from dram.config import DramConfig


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

    def with_energy(self, config: DramConfig) -> "DramStats":
        """The same counts with the energy they stand for (data sheet currents, as DRAMSim2 charges them)."""
        if config.currents is None:
            return self
        i, t = config.currents, config.timing
        # mA x clocks x V x ns = pJ, for all devices of a rank
        unit = config.organization.devices_per_rank * i.Vdd * t.tCK_ps / 1000
        row_cycle = i.IDD0 * t.tRC - (i.IDD3N * t.tRAS + i.IDD2N * (t.tRC - t.tRAS))
        background = (
            i.IDD3N * self.rank_active_cycles
            + i.IDD2P * self.rank_powerdown_cycles
            + i.IDD2N * self.rank_standby_cycles
        )
        burst = t.burst_clocks * ((i.IDD4R - i.IDD3N) * self.reads + (i.IDD4W - i.IDD3N) * self.writes)
        return replace(
            self,
            energy_background_pj=unit * background,
            energy_burst_pj=unit * burst,
            energy_activate_pj=unit * row_cycle * self.activates,
            energy_refresh_pj=unit * (i.IDD5 - i.IDD3N) * t.tRFC * self.refreshes,
        )

    def __add__(self, other: "DramStats") -> "DramStats":
        """Two channels together; ``total_cycles`` is that of the longer one."""
        values = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        values["total_cycles"] = max(self.total_cycles, other.total_cycles)
        return DramStats(**values)
