"""The terms of every bound, and how each is falsified: data of `mutate_bounds.py`."""

from __future__ import annotations

from bound_mutants.analytical import PROGRAM
from bound_mutants.machine import BATCH, FORMULA, LEAST, LOADS
from bound_mutants.network import NETWORK
from bound_mutants.orders import LINKS, ORDERS, SPACE
from bound_mutants.terms import Term

__all__ = ["MUTANTS", "TESTS", "Term"]

MUTANTS = {
    "program": PROGRAM,
    "orders": ORDERS,
    "links": LINKS,
    "space": SPACE,
    "network": NETWORK,
    "formula": FORMULA,
    "floor": BATCH,
    "least": LEAST,
    "machine": LOADS,
}

_ROWS = "tests/cosa/test_bound_rows.py"
_NETWORK_ROWS = "tests/cosa/test_bound_rows_network.py"
_FLOOR_ROWS = "tests/nocsim/test_floor_rows.py"
_MACHINE = "tests/cosa/test_analytical_loads.py"

TESTS = {
    "program": (_ROWS,),
    "orders": (_ROWS, _NETWORK_ROWS),
    "links": (_ROWS,),
    "space": (_ROWS,),
    "network": (_NETWORK_ROWS,),
    "formula": (_FLOOR_ROWS,),
    "floor": (_FLOOR_ROWS,),
    "least": (
        "tests/cosa/test_bound_least.py",
        "tests/cosa/test_opening.py::test_the_most_mac_units_are_those_of_all_ways",
    ),
    "machine": (
        f"{_MACHINE}::test_each_resource_by_hand",
        f"{_MACHINE}::test_every_port_and_link_carries_what_the_simulator_carries",
        f"{_MACHINE}::test_no_run_is_below_the_bound",
    ),
}
"""The tests that must notice, by group; they run in this order until one fails."""
