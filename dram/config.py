"""What a DRAM channel is made of: organization, timing, currents, address mapping, controller.

The models mirror the YAML device files in ``arch_configs/dram``. Times are counts of DRAM clocks unless the name says
otherwise; names in ``timing`` and ``currents`` are those of JEDEC data sheets.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dram.address_map import AddressMap, offset_bits_of, resolve_mapping

Clocks = Annotated[int, Field(ge=1, le=1_000_000)]
Delay = Annotated[int, Field(ge=0, le=1_000_000)]
Milliamperes = Annotated[float, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class Organization(_Strict):
    """How much DRAM there is and how it is cut."""

    channels: int = Field(default=1, ge=1, description="independent channels, a power of two")
    ranks: int = Field(ge=1, description="ranks on one channel, a power of two")
    bank_groups: int = Field(default=1, ge=1, description="bank groups of a rank (1: a standard without bank groups)")
    banks_per_group: int = Field(ge=1, description="banks of a bank group")
    rows: int = Field(ge=1, description="rows of a bank")
    columns: int = Field(ge=1, description="columns of a row, in device words")
    device_width_bits: int = Field(ge=1, description="data pins of one device")
    bus_width_bits: int = Field(ge=8, description="data pins of the channel, without ECC")

    @property
    def banks(self) -> int:
        """Banks of a rank."""
        return self.bank_groups * self.banks_per_group

    @property
    def devices_per_rank(self) -> int:
        """Devices side by side on the data bus."""
        return self.bus_width_bits // self.device_width_bits

    @model_validator(mode="after")
    def _powers_of_two(self) -> "Organization":
        for name in type(self).model_fields:
            value = getattr(self, name)
            if value & (value - 1):
                raise ValueError(f"{name} = {value} must be a power of two")
        if self.device_width_bits > self.bus_width_bits:
            raise ValueError(
                f"device_width_bits = {self.device_width_bits} is wider than bus_width_bits = {self.bus_width_bits}"
            )
        return self


class Timing(_Strict):
    """Delays in DRAM clocks. ``_S`` is between bank groups, ``_L`` inside one; without bank groups give ``_S`` only."""

    tCK_ps: float = Field(gt=0, description="clock period, picoseconds")
    BL: int = Field(ge=2, description="burst length, data beats")
    beats_per_clock: int = Field(default=2, ge=1, description="data beats in a clock: 2, with GDDR5 4 and more")
    CL: Clocks = Field(description="CAS latency: read command to first data")
    CWL: Clocks = Field(description="CAS write latency: write command to first data")
    AL: Delay = Field(default=0, description="additive latency (posted CAS)")
    tRCD: Clocks = Field(description="ACT to read or write, same bank")
    tRP: Clocks = Field(description="PRE to ACT, same bank")
    tRAS: Clocks = Field(description="ACT to PRE, same bank")
    tRC: Clocks = Field(description="ACT to ACT, same bank; at least tRAS + tRP")
    tRRD_S: Clocks = Field(description="ACT to ACT, other bank group of the rank")
    tRRD_L: Clocks | None = Field(default=None, description="ACT to ACT, other bank of the bank group")
    tCCD_S: Clocks = Field(description="column command to column command, other bank group")
    tCCD_L: Clocks | None = Field(default=None, description="column command to column command, same bank group")
    tWTR_S: Clocks = Field(description="end of write data to read command, other bank group")
    tWTR_L: Clocks | None = Field(default=None, description="end of write data to read command, same bank group")
    tRTP: Clocks = Field(description="read to PRE, same bank")
    tWR: Clocks = Field(description="end of write data to PRE, same bank (write recovery)")
    tRTRS: Clocks = Field(description="gap on the data bus when another rank takes it")
    tFAW: Clocks = Field(description="window of a rank in which at most four ACT may fall")
    t32AW: Clocks | None = Field(default=None, description="window of a rank in which at most 32 ACT may fall (GDDR)")
    tRCDRD: Clocks | None = Field(default=None, description="ACT to read, where it differs from tRCD (HBM, GDDR)")
    tRCDWR: Clocks | None = Field(default=None, description="ACT to write, where it differs from tRCD (HBM, GDDR)")
    tPPD: Delay = Field(default=0, description="PRE to PRE, other bank of the rank (LPDDR4, GDDR)")
    tREFI: Clocks = Field(description="average refresh interval of a rank")
    tRFC: Clocks = Field(description="REF to ACT or REF, same rank")
    tCKE: Clocks = Field(default=1, description="least time in power-down")
    tXP: Clocks = Field(default=1, description="leaving power-down to ACT")
    tCMD: Delay = Field(default=0, description="command transport to the rank (DRAMSim2; counts for reads only)")

    @property
    def burst_clocks(self) -> int:
        """Clocks the data bus is taken by one request."""
        return self.BL // self.beats_per_clock

    @property
    def act_to_read(self) -> int:
        """ACT to the internal read."""
        return self.tRCD if self.tRCDRD is None else self.tRCDRD

    @property
    def act_to_write(self) -> int:
        """ACT to the internal write."""
        return self.tRCD if self.tRCDWR is None else self.tRCDWR

    @property
    def read_latency(self) -> int:
        """Read command to first data beat."""
        return self.AL + self.CL

    @property
    def write_latency(self) -> int:
        """Write command to first data beat."""
        return self.AL + self.CWL

    @model_validator(mode="after")
    def _consistent(self) -> "Timing":
        if self.tRC < self.tRAS + self.tRP:
            raise ValueError(
                f"tRC = {self.tRC} is shorter than tRAS + tRP = {self.tRAS} + {self.tRP} = {self.tRAS + self.tRP}"
            )
        for name in ("tRCD", "tRCDRD", "tRCDWR"):
            delay = getattr(self, name)
            if delay is not None and self.tRAS < delay:
                raise ValueError(f"tRAS = {self.tRAS} is shorter than {name} = {delay}")
            if delay is not None and delay <= self.AL:
                raise ValueError(f"AL = {self.AL} must be less than {name} = {delay}")
        if self.tFAW < self.tRRD_S:
            raise ValueError(f"tFAW = {self.tFAW} is shorter than tRRD_S = {self.tRRD_S}")
        if self.t32AW is not None and self.t32AW < self.tFAW:
            raise ValueError(f"t32AW = {self.t32AW} is shorter than tFAW = {self.tFAW}")
        if self.tREFI <= self.tRFC:
            raise ValueError(f"tREFI = {self.tREFI} must be longer than tRFC = {self.tRFC}")
        for name in ("BL", "beats_per_clock"):
            if getattr(self, name) & (getattr(self, name) - 1):
                raise ValueError(f"{name} = {getattr(self, name)} must be a power of two")
        if self.beats_per_clock > self.BL:
            raise ValueError(f"beats_per_clock = {self.beats_per_clock} is more than BL = {self.BL}")
        for name in ("tRRD", "tCCD", "tWTR"):
            short, long = getattr(self, f"{name}_S"), getattr(self, f"{name}_L")
            if long is not None and long < short:
                raise ValueError(f"{name}_L = {long} is shorter than {name}_S = {short}")
        return self


class Currents(_Strict):
    """Supply currents of one device (mA) and its voltage, for the energy report."""

    Vdd: float = Field(gt=0, description="supply voltage, V")
    IDD0: Milliamperes = Field(description="one bank, ACT-PRE cycle")
    IDD2P: Milliamperes = Field(description="power-down, all banks closed")
    IDD2N: Milliamperes = Field(description="standby, all banks closed")
    IDD3N: Milliamperes = Field(description="standby, a bank open")
    IDD4R: Milliamperes = Field(description="burst read")
    IDD4W: Milliamperes = Field(description="burst write")
    IDD5: Milliamperes = Field(description="burst refresh")


class Dramsim2Controller(_Strict):
    """The controller of DRAMSim2, cycle by cycle."""

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


class FrfcfsController(_Strict):
    """First-ready, first-come first-served, open page, read priority, write draining (rules of Ramulator 2)."""

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
        "absent: the shorter one of read and write latency, 0: as Ramulator counts",
    )
    refresh_stagger: bool = Field(
        default=False, description="refresh the ranks tREFI / ranks apart instead of all at the same clock"
    )

    @model_validator(mode="after")
    def _marks(self) -> "FrfcfsController":
        if self.drain_below > self.drain_above:
            raise ValueError(f"drain_below = {self.drain_below} is above drain_above = {self.drain_above}")
        return self


class Dramsim3Controller(_Strict):
    """The controller of DRAMsim3, cycle by cycle."""

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


Controller = Annotated[Dramsim2Controller | Dramsim3Controller | FrfcfsController, Field(discriminator="policy")]


class DramConfig(_Strict):
    """One DRAM system: device, geometry and controller.

    Build it with :func:`dram.devices.load_device` from a file; keyword changes with :meth:`with_changes`.
    """

    name: str = Field(min_length=1, description="name of the device, as in its file name")
    description: str = Field(default="", description="what it is and where the numbers come from")
    organization: Organization
    timing: Timing
    currents: Currents | None = Field(default=None, description="absent: no energy report")
    address_mapping: str = Field(
        description="fields from the most significant one down, e.g. row:rank:bank:column, or scheme1 ... scheme7"
    )
    controller: Controller = Field(default_factory=Dramsim2Controller)

    @property
    def request_bytes(self) -> int:
        """Bytes moved by one request: one burst on the whole bus."""
        return self.organization.bus_width_bits // 8 * self.timing.BL

    @property
    def capacity_bytes(self) -> int:
        """Bytes of all channels together."""
        o = self.organization
        return o.channels * o.ranks * o.banks * o.rows * o.columns * o.bus_width_bits // 8

    @property
    def peak_bytes_per_clock(self) -> int:
        """Bytes per DRAM clock of one channel with its bus always busy."""
        return self.organization.bus_width_bits * self.timing.beats_per_clock // 8

    def address_map(self) -> AddressMap:
        """Positions of the address fields."""
        o = self.organization
        return AddressMap.from_fields(
            resolve_mapping(self.address_mapping),
            sizes={
                "channel": o.channels,
                "rank": o.ranks,
                "bankgroup": o.bank_groups,
                "bank": o.banks_per_group,
                "row": o.rows,
                "column": max(o.columns // self.timing.BL, 1),
            },
            offset_bits=offset_bits_of(self.request_bytes),
        )

    def with_changes(self, **changes: object) -> "DramConfig":
        """A checked copy with top-level fields or whole sections replaced."""
        return type(self).model_validate(self.model_dump() | changes)

    @model_validator(mode="after")
    def _fits_together(self) -> "DramConfig":
        o, t = self.organization, self.timing
        for name in ("tRRD_L", "tCCD_L", "tWTR_L"):
            given = getattr(t, name)
            if o.bank_groups > 1 and given is None:
                raise ValueError(f"timing.{name} is missing: organization.bank_groups = {o.bank_groups} needs it")
            if o.bank_groups == 1 and given is not None and given != getattr(t, name[:-1] + "S"):
                raise ValueError(f"timing.{name} = {given} has no meaning with organization.bank_groups = 1")
        if isinstance(self.controller, Dramsim2Controller):
            if o.bank_groups > 1:
                raise ValueError(
                    f"controller.policy = dramsim2 knows no bank groups (organization.bank_groups = {o.bank_groups}); "
                    "allowed: dramsim3, frfcfs"
                )
            if t.CWL != t.CL - 1:
                raise ValueError(
                    f"timing.CWL = {t.CWL}: controller.policy = dramsim2 always takes CL - 1 = {t.CL - 1} (WL = RL - 1)"
                )
            if t.tREFI // o.ranks <= t.tXP:
                raise ValueError(f"timing.tREFI = {t.tREFI} is too short for organization.ranks = {o.ranks}")
        if o.columns < t.BL:
            raise ValueError(f"timing.BL = {t.BL} is longer than a row of organization.columns = {o.columns}")
        self.address_map()
        return self
