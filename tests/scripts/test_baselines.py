"""`scripts/baselines.py`: what it is given is checked before anything is measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "baselines.py"


@pytest.mark.parametrize("option", ["--seeds", "--workers"])
def test_wrong_options_are_told(option: str) -> None:
    ran = subprocess.run([sys.executable, str(SCRIPT), option, "0"], capture_output=True, text=True)
    assert ran.returncode == 2
    assert f"{option}: out of range (found 0)" in ran.stderr
