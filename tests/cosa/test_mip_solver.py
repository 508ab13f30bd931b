"""Does the wrapper tell every way in which a solve can end?"""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import pyomo.core as pyo
import pytest

from cosa.common.errors import SolverError
from cosa.mip.solver import solve, solver_version


def knapsack(items=40, rows=8, seed=1):
    draw = random.Random(seed)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(items), domain=pyo.Binary)
    model.rows = pyo.ConstraintList()
    for _ in range(rows):
        sizes = [draw.randint(20, 90) for _ in range(items)]
        model.rows.add(sum(sizes[i] * model.x[i] for i in range(items)) <= sum(sizes) // 2)
    model.objective = pyo.Objective(
        expr=sum(draw.randint(20, 90) * model.x[i] for i in range(items)), sense=pyo.maximize
    )
    return model


def hard():
    return knapsack(200, 40)


def test_optimal_gives_values_objective_and_bound():
    model = knapsack()
    result = solve(model)
    assert result.status == "optimal" and result.has_solution
    assert result.objective == pytest.approx(pyo.value(model.objective)) == pytest.approx(1392)
    assert result.gap <= 1e-4 and result.bound >= result.objective - 1e-6
    assert all(result.values[model.x[i]] in (0.0, 1.0) for i in model.x)


def test_continuous_model_with_a_constant():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(1, 2))
    model.y = pyo.Var(bounds=(0, None))
    model.row = pyo.Constraint(expr=(2, model.x + model.y + 1, 5))
    model.objective = pyo.Objective(expr=2 * model.x + model.y + 3)
    result = solve(model)
    assert (result.status, result.objective, result.gap) == ("optimal", 5.0, 0.0)
    assert result.values[model.x] == 1.0


def test_fixed_variables_and_empty_models():
    model = knapsack(10, 2)
    model.x[0].fix(1)
    assert solve(model).status == "optimal"
    empty = pyo.ConcreteModel()
    empty.objective = pyo.Objective(expr=3)
    assert solve(empty).objective == 3


def test_infeasible_is_a_status_not_an_exception():
    model = knapsack(10, 2)
    model.contradiction = pyo.Constraint(expr=model.x[0] + model.x[1] >= 3)
    result = solve(model)
    assert result.status == "infeasible" and not result.has_solution and result.bound is None


def test_infeasible_beyond_presolve():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(9), domain=pyo.Binary)
    model.row = pyo.Constraint(expr=sum(2 * model.x[i] for i in range(9)) == 9)
    model.objective = pyo.Objective(expr=model.x[0])
    assert solve(model).status == "infeasible"


def test_unbounded_is_told_from_infeasible():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.NonNegativeIntegers)
    model.objective = pyo.Objective(expr=-model.x)
    assert solve(model).status == "unbounded"


def test_time_limit_with_a_solution():
    result = solve(hard(), time_limit_seconds=1)
    assert result.status == "time_limit" and result.has_solution
    assert result.gap > 1e-4 and result.bound > result.objective
    assert result.seconds < 5


def test_time_limit_without_a_solution():
    result = solve(hard(), time_limit_seconds=0)
    assert result.status == "no_solution_in_time" and not result.has_solution


def test_gap_is_respected():
    result = solve(knapsack(60, 10), gap=0.05)
    assert result.status == "optimal" and result.gap <= 0.05


def test_other_numbers_of_threads_one_after_another():
    for threads in (1, 2, 1):
        assert solve(knapsack(), threads=threads).objective == pytest.approx(1392)


def test_solves_in_several_threads_at_once():
    found = []
    workers = [threading.Thread(target=lambda: found.append(solve(knapsack()).objective)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [pytest.approx(1392)] * 3


def test_same_seed_same_values():
    first, second = solve(knapsack(seed=3), seed=5), solve(knapsack(seed=3), seed=5)
    assert list(first.values.values()) == list(second.values.values())


def test_ctrl_c_ends_the_solve_and_comes_out():
    model = hard()
    solve(knapsack())  # loads everything: an import that Ctrl-C falls into may swallow it
    started = time.perf_counter()
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        solve(model, time_limit_seconds=60)
    timer.join()
    assert time.perf_counter() - started < 20
    assert solve(knapsack()).status == "optimal"


def test_ctrl_c_leaves_a_clean_process():
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import os, signal, threading, test_mip_solver as t\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    t.solve(t.hard())\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, os.path.dirname(__file__)],  # noqa: PTH120
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "interrupted\n", "")


def test_nothing_on_the_terminal(capfd):
    solve(knapsack(10, 2))
    assert solver_version().startswith("HiGHS 1.")
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_models_that_are_not_linear_are_refused():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    model.objective = pyo.Objective(expr=model.x**2)
    with pytest.raises(SolverError, match="not linear"):
        solve(model)


def test_no_objective_is_refused():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    with pytest.raises(SolverError, match="0 active objectives"):
        solve(model)


def test_bad_options_are_refused():
    with pytest.raises(SolverError, match="mip_rel_gap"):
        solve(knapsack(5, 1), gap=-1.0)
