"""The one door to HiGHS: a linear or mixed-integer Pyomo model goes in, a `SolverResult` comes out.

Knows nothing of layers and schedules. The model is handed to HiGHS in memory: Pyomo's own HiGHS interfaces cost a third
of a second of imports more, raise instead of saying "infeasible", and call a limit with a solution "unknown".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cosa.common.errors import SolverError

SolverStatus = Literal[
    "optimal", "time_limit", "no_solution_in_time", "infeasible", "unbounded", "interrupted", "failed"
]

_WAIT_SECONDS = 0.5


@dataclass(frozen=True)
class SolverResult:
    """What HiGHS found.

    `status`: ``optimal`` (within the gap), ``time_limit`` (a solution, not proven), ``no_solution_in_time``,
    ``infeasible``, ``unbounded``, ``interrupted`` (with or without a solution) or ``failed`` (`detail` says how).
    `objective` and `values` (a Pyomo ComponentMap from variable to value) are there when there is a solution; `bound`
    is the proven bound of the objective (also where time ended before a solution), `gap` the relative distance between
    the two. `seconds` is HiGHS' wall-clock
    time, `cpu_seconds` its processor time.
    """

    status: SolverStatus
    detail: str
    seconds: float
    values: Mapping[Any, float] = field(default_factory=dict, repr=False)
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None
    cpu_seconds: float = 0.0

    @property
    def has_solution(self) -> bool:
        """Whether there are values."""
        return self.objective is not None


def solver_version() -> str:
    """Name and version of the solver, such as ``HiGHS 1.16.0``."""
    return f"HiGHS {_quiet_highs().version()}"


def solve(
    model: Any,
    *,
    time_limit_seconds: float = 60.0,
    gap: float = 1e-4,
    seed: int = 0,
    threads: int = 1,
    restarts: bool = True,
    presolve: bool = True,
) -> SolverResult:
    """Solve a linear or mixed-integer Pyomo model with one objective.

    `restarts`: whether HiGHS may begin anew once the root has fixed many variables; `presolve`: whether it simplifies
    the model first.

    The variables of the model take the values of the solution, if there is one; otherwise they stay as they are.

    Raises
    ------
    SolverError: the model is not linear, has no or several objectives, or HiGHS refuses it or an option.
    KeyboardInterrupt: Ctrl-C while HiGHS works; HiGHS is stopped first.
    """
    highs = _quiet_highs()
    for option, setting in (
        ("time_limit", float(time_limit_seconds)),
        ("mip_rel_gap", float(gap)),
        ("random_seed", int(seed)),
        ("threads", int(threads)),
        ("mip_allow_restart", restarts),
        ("presolve", "choose" if presolve else "off"),
    ):
        if highs.setOptionValue(option, setting).name != "kOk":
            raise SolverError(f"HiGHS refuses {option} = {setting!r}")
    columns = _pass_model(highs, model)
    started, worked = time.perf_counter(), time.process_time()
    _run(highs)
    if highs.getModelStatus().name == "kUnboundedOrInfeasible":
        # Presolve could not tell the two apart.
        highs.setOptionValue("presolve", "off")
        _run(highs)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - worked
    return replace(_result(highs, columns, seconds), cpu_seconds=cpu_seconds)


def _quiet_highs() -> Any:
    """A HiGHS without output; its constructor prints a banner unless the output is off before callbacks are set up."""
    import highspy

    class QuietHighs(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> None:  # noqa: N802
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

    return QuietHighs()


def _run(highs: Any) -> None:
    """Run in a thread of its own, so that Ctrl-C reaches Python while HiGHS works.

    HiGHS keeps a pool of threads for each thread that starts it, and refuses another number of threads there: a fresh
    thread a run avoids that too. An event tells the end, for joining a thread across Ctrl-C returns too early in
    Python 3.11.
    """
    stop, done = threading.Event(), threading.Event()

    def interrupt(event: Any) -> None:
        if stop.is_set():
            event.interrupt()

    def work() -> None:
        try:
            highs.run()
        finally:
            done.set()

    for callback in (highs.cbMipInterrupt, highs.cbSimplexInterrupt, highs.cbIpmInterrupt):
        callback.subscribe(interrupt)
    threading.Thread(target=work, name="highs", daemon=True).start()
    try:
        while not done.wait(_WAIT_SECONDS):
            pass
    except BaseException:
        stop.set()
        done.wait()
        raise
    finally:
        for callback in (highs.cbMipInterrupt, highs.cbSimplexInterrupt, highs.cbIpmInterrupt):
            callback.unsubscribe(interrupt)


def _pass_model(highs: Any, model: Any) -> list[Any]:
    """Hand the model over; the variables in the order of the columns."""
    import highspy
    import numpy as np
    from pyomo.core import Constraint, Objective, Var

    objectives = list(model.component_data_objects(Objective, active=True))
    if len(objectives) != 1:
        raise SolverError(f"the model has {len(objectives)} active objectives; allowed: 1")
    variables = [variable for variable in model.component_data_objects(Var, active=True) if not variable.fixed]
    column = {id(variable): index for index, variable in enumerate(variables)}
    cost = np.zeros(len(variables))
    constant = 0.0
    for index, coefficient in _linear(objectives[0].expr, column, objectives[0]):
        if index < 0:
            constant = coefficient
        else:
            cost[index] += coefficient
    starts, indices, coefficients, lower, upper = [0], [], [], [], []
    for row in model.component_data_objects(Constraint, active=True):
        low, body, high = row.to_bounded_expression(evaluate_bounds=True)
        shift = 0.0
        for index, coefficient in _linear(body, column, row):
            if index < 0:
                shift = coefficient
            else:
                indices.append(index)
                coefficients.append(coefficient)
        starts.append(len(indices))
        lower.append(-highspy.kHighsInf if low is None else low - shift)
        upper.append(highspy.kHighsInf if high is None else high - shift)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(variables), len(lower)
    lp.col_cost_ = cost
    lp.offset_ = constant
    lp.sense_ = highspy.ObjSense.kMinimize if objectives[0].is_minimizing() else highspy.ObjSense.kMaximize
    lp.col_lower_ = np.array([-highspy.kHighsInf if v.lb is None else v.lb for v in variables], dtype=float)
    lp.col_upper_ = np.array([highspy.kHighsInf if v.ub is None else v.ub for v in variables], dtype=float)
    lp.row_lower_, lp.row_upper_ = np.array(lower, dtype=float), np.array(upper, dtype=float)
    integer, continuous = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
    if any(not v.is_continuous() for v in variables):
        lp.integrality_ = [continuous if v.is_continuous() else integer for v in variables]
    matrix = lp.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.start_, matrix.index_ = np.array(starts, dtype=np.int32), np.array(indices, dtype=np.int32)
    matrix.value_ = np.array(coefficients, dtype=float)
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverError("HiGHS refuses the model (a bound or coefficient that is not a number?)")
    return variables


def _linear(expression: Any, column: dict[int, int], where: Any) -> Iterator[tuple[int, float]]:
    """(column, coefficient) of a linear expression; the constant comes with column -1."""
    from pyomo.repn.standard_repn import generate_standard_repn

    linear = generate_standard_repn(expression, compute_values=True, quadratic=False)
    if linear.nonlinear_expr is not None:
        raise SolverError(f"{where.name} is not linear; HiGHS takes linear constraints and objectives only")
    yield -1, float(linear.constant)
    for variable, coefficient in zip(linear.linear_vars, linear.linear_coefs, strict=True):
        yield column[id(variable)], float(coefficient)


def _result(highs: Any, columns: list[Any], seconds: float) -> SolverResult:
    import highspy
    from pyomo.common.collections import ComponentMap

    info = highs.getInfo()
    known = highspy.HighsModelStatus
    model_status = highs.getModelStatus()
    detail = highs.modelStatusToString(model_status)
    # A status of "feasible point" also follows a limit: HiGHS reports limit and solution apart.
    solved = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    status: SolverStatus
    if model_status == known.kOptimal:
        status = "optimal"
    elif model_status == known.kModelEmpty:
        status, solved = "optimal", True
    elif model_status == known.kInfeasible:
        status, solved = "infeasible", False
    elif model_status == known.kUnbounded:
        status, solved = "unbounded", False
    elif model_status == known.kInterrupt:
        status = "interrupted"
    elif model_status in (known.kTimeLimit, known.kSolutionLimit, known.kIterationLimit):
        status = "time_limit" if solved else "no_solution_in_time"
    else:
        status, solved = "failed", False
    is_mip = any(not variable.is_continuous() for variable in columns)
    if not solved:
        proven = float(info.mip_dual_bound) if is_mip and status == "no_solution_in_time" else -highspy.kHighsInf
        return SolverResult(status, detail, seconds, bound=None if abs(proven) == highspy.kHighsInf else proven)
    numbers = list(highs.getSolution().col_value)
    values = ComponentMap()
    for variable, number in zip(columns, numbers, strict=True):
        # Integers come back within HiGHS' tolerance of 1e-6; whoever reads them wants whole numbers.
        value = number if variable.is_continuous() else float(round(number))
        values[variable] = value
        variable.set_value(value, skip_validation=True)
    objective = float(info.objective_function_value) if columns else float(highs.getLp().offset_)
    bound: float | None = float(info.mip_dual_bound) if is_mip else (objective if status == "optimal" else None)
    if bound is not None and abs(bound) == highspy.kHighsInf:
        bound = None
    gap = None if bound is None else abs(objective - bound) / max(abs(objective), 1e-12)
    return SolverResult(status, detail, seconds, values, objective, bound, gap)
