"""A policy is a folder: what kernels share stands once, and nobody else knows a policy's name."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pytest
from pydantic import Field

import dram
from dram import banks_kernel as b
from dram import policy
from dram.config import DramConfig
from dram.devices import load_device
from dram.policies import packaged
from dram.policies.dramsim2 import command_kernel as dramsim2_kernel
from dram.policies.dramsim3 import kernel as dramsim3_kernel
from dram.policies.frfcfs import FrfcfsController
from dram.policies.frfcfs import kernel as frfcfs_kernel
from dram.system import WRITE, DramSystem

KERNELS = (dramsim2_kernel, dramsim3_kernel, frfcfs_kernel)


@pytest.mark.parametrize("kernel", KERNELS)
def test_own_positions_follow_the_shared_ones(kernel: object) -> None:
    own = vars(kernel)
    for size, first in (("PARAMS", b.PARAMS), ("CONTROL", b.CONTROL)):
        assert own[size] >= first
    shared = {name: value for name, value in vars(b).items() if name.isupper()}
    for name in set(own) & set(shared) - {"PARAMS", "CONTROL", "BANK_FIELDS", "SLOT_FIELDS", "RANK_FIELDS"}:
        assert own[name] == shared[name], name


def test_a_policy_is_named_in_its_own_folder_only() -> None:
    folder = Path(dram.__path__[0])
    assert packaged() == sorted(policy.controllers()) == ["dramsim2", "dramsim3", "frfcfs"]
    for file in folder.rglob("*.py"):
        text = re.sub(r'""".*?"""|#.*', "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        names = {name for name in packaged() if re.search(rf"\b{name}\b", text)}
        assert names <= {file.relative_to(folder).parts[1] if file.parts[-3] == "policies" else ""}, file


class LastComeController(FrfcfsController):
    """A policy of somebody else: its own name and option, the channel of another."""

    simulator: ClassVar[str] = ""
    policy: Literal["last_come"] = "last_come"  # type: ignore[assignment]
    patience: int = Field(default=3, ge=0)


@pytest.fixture
def last_come() -> Iterator[None]:
    policy.register(LastComeController)
    yield
    del policy._registered["last_come"]
    DramConfig.model_rebuild(force=True)


def test_a_policy_registers(last_come: None) -> None:
    """It can be chosen, with its own options, by whoever reads a device; then it is gone again."""
    device = load_device("ddr4_2400_x8").model_dump(mode="json")
    config = DramConfig.model_validate(device | {"controller": {"policy": "last_come", "patience": 5}})
    assert isinstance(config.controller, LastComeController) and config.controller.patience == 5
    assert config.with_changes(name="other").controller == config.controller
    systems = [DramSystem(one) for one in (config, load_device("ddr4_2400_x8"))]
    done = []
    for system in systems:
        count = 50
        ops = np.full(count, WRITE)
        ops[::2] = 1 - WRITE
        system.submit_many(np.arange(count), ops, np.arange(count) * 4096, np.arange(count))
        done.append(system.advance(10_000))
    assert done[0] == done[1] and len(done[0]) == 50
    with pytest.raises(ValueError, match="patience"):
        DramConfig.model_validate(device | {"controller": {"policy": "last_come", "patience": -1}})


def test_a_policy_that_is_gone_is_refused() -> None:
    device = load_device("ddr4_2400_x8").model_dump(mode="json")
    with pytest.raises(ValueError, match="last_come"):
        DramConfig.model_validate(device | {"controller": {"policy": "last_come"}})


@pytest.mark.parametrize("name", packaged())
def test_a_kernel_gets_the_arrays_that_have_grown(name: str) -> None:
    device = load_device("ddr2_667_x8" if name == "dramsim2" else "ddr4_2400_x8")
    system = DramSystem(device.with_changes(controller={"policy": name}), logging=True)
    (channel,) = system.channels
    fields = channel.kernel.State._fields
    at_first = channel.kernel_state()
    count = 5000
    number = np.arange(count)
    system.submit_many(number, number % 3 == 0, number * 8256, number)
    assert len(system.advance(1_000_000)) == count
    state = channel.kernel_state()
    assert all(getattr(state, field) is getattr(channel, field) for field in fields)
    grown = {field for field in fields if getattr(state, field) is not getattr(at_first, field)}
    assert grown >= {"staged", "flight", "request_log", "command_log"}


def test_importing_compiles_nothing() -> None:
    code = (
        "import dram, dram.reference\n"
        "from dram import queues_kernel\n"
        "from dram.policies.dramsim2 import kernel as first\n"
        "from dram.policies.frfcfs import kernel as second\n"
        "for f in (first.run, second.run, queues_kernel.push):\n"
        "    assert not f.signatures\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_reading_a_device_loads_no_compiler() -> None:
    code = "import sys, dram\ndram.load_device('ddr4_2400_x8')\nassert 'numba' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
