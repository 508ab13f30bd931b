"""Schedules that several tests simulate."""

from __future__ import annotations

import pytest

import cosa
from cosa.model.schedule import Schedule


@pytest.fixture(scope="session")
def main_job() -> Schedule:
    """ResNet-50's 3x3 56x56 64->64 layer on the default architecture."""
    return cosa.schedule("resnet50:input.8", objective="cosa")


@pytest.fixture(scope="session")
def small_job() -> Schedule:
    """A small convolution with several tiles at the DRAM."""
    layer = cosa.Layer(name="small", R=3, S=3, P=14, Q=14, C=32, K=32, N=1)
    return cosa.schedule(layer, objective="cosa")
