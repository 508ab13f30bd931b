"""What the data sheet of a device says: organization, timing, currents.

Times are counts of DRAM clocks unless the name says otherwise; names in ``timing`` and ``currents`` are those of JEDEC
data sheets.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

Clocks = Annotated[int, Field(ge=1, le=1_000_000)]
Delay = Annotated[int, Field(ge=0, le=1_000_000)]
Milliamperes = Annotated[float, Field(ge=0)]


class Strict(BaseModel):
    """A frozen section of a device file, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class Organization(Strict):
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


class Timing(Strict):
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


class Currents(Strict):
    """Supply currents of one device (mA) and its voltage, for the energy report."""

    Vdd: float = Field(gt=0, description="supply voltage, V")
    IDD0: Milliamperes = Field(description="one bank, ACT-PRE cycle")
    IDD2P: Milliamperes = Field(description="power-down, all banks closed")
    IDD2N: Milliamperes = Field(description="standby, all banks closed")
    IDD3N: Milliamperes = Field(description="standby, a bank open")
    IDD4R: Milliamperes = Field(description="burst read")
    IDD4W: Milliamperes = Field(description="burst write")
    IDD5: Milliamperes = Field(description="burst refresh")
