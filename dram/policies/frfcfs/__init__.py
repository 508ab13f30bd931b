"""The ``frfcfs`` policy: options and timing of an open-page FR-FCFS controller, by the rules of Ramulator 2."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from dram.constraints import Constraint, activation_rows, short_and_long
from dram.data_sheet import Timing
from dram.policy import Controller, register


@register
class FrfcfsController(Controller):
    """First-ready, first-come first-served, open page, read priority, write draining (rules of Ramulator 2)."""

    channel_class: ClassVar[str] = "dram.policies.frfcfs.channel:FrfcfsChannel"
    measured_by: ClassVar[str] = "dram.policies.frfcfs.measured:measured"
    simulator: ClassVar[str] = "ramulator2"
    write_done: ClassVar[Literal["command", "data"]] = "command"

    policy: Literal["frfcfs"] = "frfcfs"
    read_queue: int = Field(default=32, ge=1, le=1024, description="reads the controller holds")
    write_queue: int = Field(default=32, ge=1, le=1024, description="writes the controller holds")
    drain_above: float = Field(
        default=0.8, ge=0, le=1, description="share of the write queue above which writes go first"
    )
    drain_below: float = Field(default=0.2, ge=0, le=1, description="share below which waiting reads go first again")
    drain_batch: int | None = Field(
        default=64,
        ge=1,
        description="writes in one go after which the reads that wait have their turn; null: no limit, as in Ramulator",
    )
    forward_clocks: int | None = Field(
        default=None,
        ge=0,
        description="acceptance to completion of a read answered from, or a write merged into, the write queue; "
        "absent: the shorter one of read and write latency, 0: as Ramulator counts; such a read leaves behind the "
        "reads that wait for their data, one a clock",
    )
    refresh_stagger: bool = Field(
        default=False, description="refresh the ranks tREFI / ranks apart instead of all at the same clock"
    )

    @model_validator(mode="after")
    def _marks(self) -> "FrfcfsController":
        if self.drain_below > self.drain_above:
            raise ValueError(f"drain_below = {self.drain_below} is above drain_above = {self.drain_above}")
        return self

    def constraints(self, timing: Timing) -> list[Constraint]:
        """The constraints of policy ``frfcfs``, as JEDEC's tables give them.

        Without bank groups (no ``_L`` values) the ``_S`` values hold for all banks.
        """
        t = timing
        burst, read, write = t.burst_clocks, t.read_latency, t.write_latency
        ccd_short, ccd_long = short_and_long(t.tCCD_S, t.tCCD_L)
        wtr_short, wtr_long = short_and_long(t.tWTR_S, t.tWTR_L)
        # the write preamble takes the clock before the data, hence two clocks between read and write data
        read_to_write = read + burst + 2 - write
        rows = [
            Constraint("channel", "RD", "RD", burst, "data bus"),
            Constraint("channel", "WR", "WR", burst, "data bus"),
            Constraint("rank", "RD", "RD", ccd_short, "tCCD_S"),
            Constraint("rank", "WR", "WR", ccd_short, "tCCD_S"),
            Constraint("rank", "RD", "WR", read_to_write, "read to write"),
            Constraint("rank", "WR", "RD", write + burst + wtr_short, "tWTR_S"),
            Constraint("group", "RD", "RD", ccd_long, "tCCD_L"),
            Constraint("group", "WR", "WR", ccd_long, "tCCD_L"),
            Constraint("group", "WR", "RD", write + burst + wtr_long, "tWTR_L"),
            *activation_rows(t),
            Constraint("bank", "ACT", "RD", t.act_to_read - t.AL, "tRCD"),
            Constraint("bank", "ACT", "WR", t.act_to_write - t.AL, "tRCD"),
            Constraint("bank", "ACT", "PRE", t.tRAS, "tRAS"),
            Constraint("bank", "RD", "PRE", t.AL + t.tRTP, "tRTP"),
            Constraint("bank", "WR", "PRE", write + burst + t.tWR, "tWR"),
            Constraint("bank", "PRE", "ACT", t.tRP, "tRP"),
            Constraint("rank", "ACT", "PREA", t.tRAS, "tRAS"),
            Constraint("rank", "RD", "PREA", t.AL + t.tRTP, "tRTP"),
            Constraint("rank", "WR", "PREA", write + burst + t.tWR, "tWR"),
            Constraint("rank", "PREA", "ACT", t.tRP, "tRP"),
            Constraint("rank", "ACT", "REF", t.tRC, "tRC"),
            Constraint("rank", "PRE", "REF", t.tRP, "tRP"),
            Constraint("rank", "PREA", "REF", t.tRP, "tRP"),
            Constraint("rank", "REF", "ACT", t.tRFC, "tRFC"),
            Constraint("rank", "REF", "REF", t.tRFC, "tRFC"),
            Constraint("other ranks", "RD", "RD", burst + t.tRTRS, "tRTRS"),
            Constraint("other ranks", "WR", "WR", burst + t.tRTRS, "tRTRS"),
            Constraint("other ranks", "RD", "WR", read_to_write, "read to write"),
            Constraint("other ranks", "WR", "RD", write + burst + t.tRTRS - read, "tRTRS"),
        ]
        if t.tPPD:
            rows.append(Constraint("rank", "PRE", "PRE", t.tPPD, "tPPD"))
        return rows
