"""Configurations of measured cases: from a simulator's own parameters, as it parsed them, to ours."""

import json
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from pydantic import ValidationError

from dram.config import DramConfig
from dram.errors import DramConfigError
from dram.policy import controllers

#: address fields of the reference files
_FIELD_NAMES = {"ch": "channel", "ra": "rank", "bg": "bankgroup", "ba": "bank", "ro": "row", "co": "column"}


def reference_config(folder: Path, data: dict[str, Any] | None = None) -> DramConfig:
    """The configuration a folder of cases was measured with.

    Raises:
        NotImplementedError: no controller policy here corresponds to it.
    """
    if data is None:
        data = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert data is not None
    return DramConfig.model_validate(measured_device(data))


def measured_device(data: dict[str, Any]) -> dict[str, Any]:
    """Sections of a device file from the parameters of a simulator, in the layout of a ``config.json``.

    Raises:
        NotImplementedError: no controller policy here corresponds to it.
    """
    fields = [_FIELD_NAMES[name] for name, _ in reversed(data["address_fields_lsb_to_msb"])]
    fields += [required for required in ("row", "bank", "column") if required not in fields]
    why_not = f"no policy for {data['simulator']}"
    for name, controller in controllers().items():
        if controller.simulator == data["simulator"]:
            try:
                device: dict[str, Any] = resolve_name(controller.measured_by)(data)
            except NotImplementedError as error:
                why_not = str(error)
                continue
            device["controller"]["policy"] = name
            return device | {"name": data["config_id"], "address_mapping": ":".join(fields)}
    raise NotImplementedError(why_not)


@dataclass(frozen=True)
class ReferenceSetup:
    """How a folder of cases was measured.

    ``width`` requests at most were presented in a clock, and clocking went on for ``tail_clocks`` after the last
    completion.
    """

    config: DramConfig
    width: int
    tail_clocks: int


def load_reference(path: Path) -> ReferenceSetup:
    """Read a ``config.json`` of the reference measurements.

    Raises:
        DramConfigError: the file cannot be read, a parameter is missing or wrong, or no policy here corresponds to it.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        config = reference_config(path.parent, data)
        width = int(data.get("issue_width_per_cycle", 1))
        tail = max(int(data.get("tail_cycles_after_last_completion", 0)), 0)
    except OSError as error:
        raise DramConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DramConfigError(f"{path}: not JSON: {error}") from None
    except KeyError as error:
        raise DramConfigError(f"{path}: {error.args[0]}: missing; allowed: a config.json of the measurements") from None
    except NotImplementedError as error:
        raise DramConfigError(f"{path}: not supported: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise DramConfigError(f"{path}: {place}: {first['msg']} (found {first['input']!r})") from None
    except (TypeError, AttributeError, ValueError, ZeroDivisionError) as error:
        raise DramConfigError(f"{path}: not a config.json of the measurements: {error}") from None
    if not 1 <= width <= 1024:
        raise DramConfigError(f"{path}: issue_width_per_cycle: out of range (found {width}); allowed: 1 to 1024")
    return ReferenceSetup(config, width, tail)
