"""The ``dramsim2`` policy: options and timing of the controller of DRAMSim2."""

from typing import ClassVar, Literal

from pydantic import Field

from dram.constraints import Constraint, for_commands
from dram.data_sheet import Organization, Timing
from dram.policy import Controller, register


@register
class Dramsim2Controller(Controller):
    """The controller of DRAMSim2, cycle by cycle."""

    is_default: ClassVar[bool] = True
    has_bank_groups: ClassVar[bool] = False
    channel_class: ClassVar[str] = "dram.policies.dramsim2.channel:Dramsim2Channel"
    measured_by: ClassVar[str] = "dram.policies.dramsim2.measured:measured"
    simulator: ClassVar[str] = "dramsim2"

    policy: Literal["dramsim2"] = "dramsim2"
    page: Literal["open", "close"] = Field(
        default="open",
        description="open: a row stays open while requests wait for it; close: every column command precharges",
    )
    queues: Literal["per_rank", "per_bank"] = Field(
        default="per_rank", description="one command queue per rank or bank"
    )
    order: Literal["rank_then_bank", "bank_then_rank"] = Field(
        default="rank_then_bank", description="which index of the round robin moves first"
    )
    transaction_queue: int = Field(default=32, ge=1, le=4096, description="requests waiting for a command queue")
    command_queue: int = Field(default=32, ge=2, le=4096, description="commands a queue holds; a request takes two")
    row_accesses: int = Field(
        default=4, ge=1, description="accesses to an open row after its first one, before it is closed (open page)"
    )
    low_power: bool = Field(default=True, description="power idle ranks down")
    refresh_backlog: Literal["lost", "kept"] = Field(
        default="lost",
        description="a refresh that falls due while another one waits: lost (DRAMSim2) or kept in line",
    )

    def constraints(self, timing: Timing) -> list[Constraint]:
        """The delays DRAMSim2 derives (WL = RL - 1), where they hold always.

        Left out are the delays between ranks, which DRAMSim2 applies to banks with an open row only, and tRC for rows
        that close by themselves in ranks that power down: waking up overwrites it there.
        """
        t = timing
        burst, read = t.burst_clocks, t.read_latency
        write = read - 1
        to_pre_read = t.AL + burst + max(t.tRTP, t.tCCD_S) - t.tCCD_S
        to_pre_write = write + burst + t.tWR
        rows = [
            Constraint("rank", "RD", "RD", max(t.tCCD_S, burst), "tCCD_S"),
            Constraint("rank", "WR", "WR", max(t.tCCD_S, burst), "tCCD_S"),
            Constraint("rank", "RD", "WR", read + burst + t.tRTRS - write, "read to write"),
            Constraint("rank", "WR", "RD", write + burst + t.tWTR_S, "tWTR_S"),
            Constraint("bank", "ACT", "RD", t.tRCD - t.AL, "tRCD"),
            Constraint("bank", "ACT", "WR", t.tRCD - t.AL, "tRCD"),
        ]
        if self.page == "close":
            rows = [
                *for_commands(rows, {"RD": "RDA", "WR": "WRA"}),
                Constraint("bank", "RDA", "ACT", t.AL + t.tRTP + t.tRP, "tRTP"),
                Constraint("bank", "WRA", "ACT", to_pre_write + t.tRP, "tWR"),
            ]
        else:
            rows += [
                Constraint("bank", "RD", "PRE", to_pre_read, "tRTP"),
                Constraint("bank", "WR", "PRE", to_pre_write, "tWR"),
            ]
        if not (self.page == "close" and self.low_power):
            rows.append(Constraint("bank", "ACT", "ACT", t.tRC, "tRC"))
        return [
            *rows,
            Constraint("bank", "ACT", "PRE", t.tRAS, "tRAS"),
            Constraint("bank", "PRE", "ACT", t.tRP, "tRP"),
            Constraint("rank", "ACT", "ACT", t.tRRD_S, "tRRD_S"),
            Constraint("rank", "ACT", "ACT", t.tFAW, "tFAW", window=4),
            Constraint("rank", "REF", "ACT", t.tRFC, "tRFC"),
        ]

    def check(self, organization: Organization, timing: Timing) -> None:
        """See :meth:`Controller.check`."""
        o, t = organization, timing
        if t.CWL != t.CL - 1:
            raise ValueError(
                f"timing.CWL = {t.CWL}: controller.policy = dramsim2 always takes CL - 1 = {t.CL - 1} (WL = RL - 1)"
            )
        if t.tREFI // o.ranks <= t.tXP:
            raise ValueError(f"timing.tREFI = {t.tREFI} is too short for organization.ranks = {o.ranks}")

    def write_latency(self, timing: Timing) -> int:
        """WL = RL - 1."""
        return timing.read_latency - 1
