"""The ``dramsim3`` policy: options and timing of the controller of DRAMsim3."""

from typing import ClassVar, Literal

from pydantic import Field

from dram.constraints import Constraint, activation_rows, for_commands, short_and_long
from dram.data_sheet import Timing
from dram.policy import Controller, register


@register
class Dramsim3Controller(Controller):
    """The controller of DRAMsim3, cycle by cycle."""

    channel_class: ClassVar[str] = "dram.policies.dramsim3.channel:Dramsim3Channel"
    measured_by: ClassVar[str] = "dram.policies.dramsim3.measured:measured"
    simulator: ClassVar[str] = "dramsim3"

    policy: Literal["dramsim3"] = "dramsim3"
    page: Literal["open", "close"] = Field(
        default="open",
        description="open: a row stays open until another one of its bank is needed; close: every column command "
        "precharges",
    )
    queues: Literal["per_bank", "per_rank"] = Field(
        default="per_bank", description="one command queue per rank or bank"
    )
    command_queue: int = Field(default=8, ge=1, le=1024, description="requests a command queue holds")
    transaction_queue: int = Field(
        default=32, ge=1, le=1024, description="reads, and as many writes, that wait for a command queue"
    )
    unified_queue: bool = Field(default=False, description="one transaction queue for reads and writes together")
    row_accesses: int = Field(
        default=4, ge=1, description="accesses to an open row after which an older request may close it"
    )
    drain_above: int = Field(
        default=8, ge=0, description="writes waiting above which they are written once nothing else is queued"
    )
    dual_command: bool = Field(default=False, description="a row and a column command in one clock (HBM)")
    refresh_ranks: Literal["staggered", "first_only"] = Field(
        default="staggered",
        description="staggered: each rank every tREFI, tREFI / ranks apart; first_only: rank 0 alone, as DRAMsim3's "
        "simultaneous refresh does",
    )
    leftover_writes: Literal["written", "parked"] = Field(
        default="written",
        description="writes that are too few to be drained: written as soon as nothing else waits, or parked for ever, "
        "as in DRAMsim3: every write counts as done when accepted, and a full write buffer can lock up",
    )

    def constraints(self, timing: Timing) -> list[Constraint]:
        """The constraints of DRAMsim3. Rank-wide commands need all banks ready, so their rows have scope rank."""
        t = timing
        burst, read, write = t.burst_clocks, t.read_latency, t.write_latency
        ccd_short, ccd_long = (max(burst, value) for value in short_and_long(t.tCCD_S, t.tCCD_L))
        wtr_short, wtr_long = short_and_long(t.tWTR_S, t.tWTR_L)
        read_to_write = read + burst - write + t.tRTRS
        columns = [
            Constraint("rank", "RD", "RD", ccd_short, "tCCD_S"),
            Constraint("group", "RD", "RD", ccd_long, "tCCD_L"),
            Constraint("other ranks", "RD", "RD", burst + t.tRTRS, "tRTRS"),
            Constraint("rank", "WR", "WR", ccd_short, "tCCD_S"),
            Constraint("group", "WR", "WR", ccd_long, "tCCD_L"),
            Constraint("other ranks", "WR", "WR", burst, "data bus"),
            Constraint("rank", "RD", "WR", read_to_write, "read to write"),
            Constraint("other ranks", "RD", "WR", read + burst - write + t.tRTRS, "tRTRS"),
            Constraint("rank", "WR", "RD", write + burst + wtr_short, "tWTR_S"),
            Constraint("group", "WR", "RD", write + burst + wtr_long, "tWTR_L"),
            Constraint("other ranks", "WR", "RD", write + burst + t.tRTRS - read, "tRTRS"),
            Constraint("bank", "ACT", "RD", t.act_to_read - t.AL, "tRCD"),
            Constraint("bank", "ACT", "WR", t.act_to_write - t.AL, "tRCD"),
        ]
        write_to_precharge = write + burst + t.tWR
        if self.page == "close":
            columns = [
                *for_commands(columns, {"RD": "RDA", "WR": "WRA"}),
                Constraint("bank", "RDA", "ACT", t.AL + burst + t.tRTP + t.tRP, "tRTP"),
                Constraint("bank", "WRA", "ACT", write_to_precharge + t.tRP, "tWR"),
                Constraint("rank", "RDA", "REF", t.AL + t.tRTP + t.tRP, "tRTP"),
                Constraint("rank", "WRA", "REF", write_to_precharge + t.tRP, "tWR"),
            ]
        else:
            columns += [
                Constraint("bank", "RD", "PRE", t.AL + t.tRTP, "tRTP"),
                Constraint("bank", "WR", "PRE", write_to_precharge, "tWR"),
            ]
        rows = [
            *columns,
            *activation_rows(t),
            Constraint("bank", "ACT", "PRE", t.tRAS, "tRAS"),
            Constraint("bank", "PRE", "ACT", t.tRP, "tRP"),
            Constraint("rank", "PRE", "REF", t.tRP, "tRP"),
            Constraint("rank", "REF", "ACT", t.tRFC, "tRFC"),
            Constraint("rank", "REF", "REF", t.tRFC, "tRFC"),
        ]
        if t.tPPD:
            rows.append(Constraint("rank", "PRE", "PRE", t.tPPD, "tPPD"))
        return rows

    @property
    def posts_writes(self) -> bool:
        """See :meth:`Controller.posts_writes`."""
        return self.leftover_writes == "parked"

    @property
    def commands_per_clock(self) -> int:
        """See :meth:`Controller.commands_per_clock`."""
        return 2 if self.dual_command else 1
