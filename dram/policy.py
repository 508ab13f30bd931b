"""Policies by name. A policy is what a controller decides by: its queues, scheduler and row policy.

It is a module or package of `dram.policies` that defines a :class:`Controller` under :func:`register`; nothing else
names it. What policies share are parts: address map, table of constraints, ready times, refreshes, power states, logs.
"""

import sys
from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from dram.data_sheet import Organization, Strict, Timing
from dram.policies import packaged

if TYPE_CHECKING:
    from dram.constraints import Constraint


class Controller(Strict, ABC):
    """The options of a policy, with what the rest of the package has to know about it."""

    policy: str

    is_default: ClassVar[bool] = False
    """for devices that name no policy"""
    has_bank_groups: ClassVar[bool] = True
    channel_class: ClassVar[str]
    """``module:name`` of what runs a channel; loading it loads the compiler"""
    measured_by: ClassVar[str]
    """``module:name`` of a function from the ``config.json`` of a measured case to the sections of a device; raises
    NotImplementedError, with the reason, for what the policy does not follow"""
    simulator: ClassVar[str] = ""
    """name of the simulator it follows, in measured cases"""
    write_done: ClassVar[Literal["command", "data"]] = "data"
    """what that simulator calls a completed write: its command, or its data (or acceptance)"""

    @abstractmethod
    def constraints(self, timing: Timing) -> "list[Constraint]":
        """The timing constraints that a channel is run with."""

    def check(self, organization: Organization, timing: Timing) -> None:
        """ValueError if the policy cannot run such a device."""

    def write_latency(self, timing: Timing) -> int:
        """Write command to first data beat."""
        return timing.write_latency

    @property
    def posts_writes(self) -> bool:
        """A write counts as done when it is accepted."""
        return False

    @property
    def commands_per_clock(self) -> int:
        """Commands that a channel may send in a clock."""
        return 1


ControllerT = TypeVar("ControllerT", bound=type[Controller])

_registered: dict[str, type[Controller]] = {}


def register(controller: ControllerT) -> ControllerT:
    """Make a policy known by the default of its field ``policy``. A decorator."""
    known: type[Controller] = controller
    _registered[str(known.model_fields["policy"].default)] = known
    config = getattr(sys.modules.get("dram.config"), "DramConfig", None)
    if config is not None:  # its field takes the policies known
        config.model_rebuild(force=True)
    return controller


def controllers() -> dict[str, type[Controller]]:
    """All policies by name."""
    for name in packaged():
        import_module(f"dram.policies.{name}")
    return {name: _registered[name] for name in sorted(_registered)}


def default_controller() -> Controller:
    """The controller of a device that names none."""
    (default,) = (controller for controller in controllers().values() if controller.is_default)
    return default.model_validate({})


class OfItsPolicy:
    """Annotation of a field that holds the controller of any policy known: ``policy`` tells which."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        choices = {name: handler.generate_schema(controller) for name, controller in controllers().items()}
        return core_schema.tagged_union_schema(choices, discriminator="policy")
