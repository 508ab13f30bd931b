"""One DRAM system: a device, its geometry and its controller, as the YAML files in ``arch_configs/dram`` have them."""

from typing import Annotated

from pydantic import Field, model_validator

from dram.address_map import AddressMap, offset_bits_of, resolve_mapping
from dram.data_sheet import Currents, Organization, Strict, Timing
from dram.policy import Controller, OfItsPolicy, controllers, default_controller


class DramConfig(Strict):
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
    controller: Annotated[Controller, OfItsPolicy()] = Field(default_factory=default_controller)

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
        if o.bank_groups > 1 and not self.controller.has_bank_groups:
            allowed = ", ".join(name for name, controller in controllers().items() if controller.has_bank_groups)
            raise ValueError(
                f"controller.policy = {self.controller.policy} knows no bank groups (organization.bank_groups = "
                f"{o.bank_groups}); allowed: {allowed}"
            )
        self.controller.check(o, t)
        if o.columns < t.BL:
            raise ValueError(f"timing.BL = {t.BL} is longer than a row of organization.columns = {o.columns}")
        self.address_map()
        return self
