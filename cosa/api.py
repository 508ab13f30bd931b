"""The Python API: one call from a layer and an architecture to a schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cosa.common.errors import InputError
from cosa.common.files import FileModel
from cosa.model.arch import Architecture, load_architecture
from cosa.model.layer import Layer
from cosa.model.networks import load_network, network_names
from cosa.model.schedule import Schedule
from cosa.model.validity import require_valid

if TYPE_CHECKING:
    from cosa.analytical.evaluation import Convention, Evaluation
    from cosa.mappers.program import ProgramOptions
    from cosa.mappers.registry import MapperOptions

FRONT_POINTS = 5
FileModelT = TypeVar("FileModelT", bound=FileModel)


def schedule(
    layer: Layer | Mapping[str, Any] | str | Path,
    architecture: Architecture | Mapping[str, Any] | str | Path = "simba_4x4",
    mapper: str | MapperOptions | None = None,
    *,
    workers: int = 1,
    **options: Any,
) -> Schedule:
    """A schedule of a layer on an architecture.

    Parameters
    ----------
    layer: a layer, a mapping of its fields, the path of a layer file, or ``"network:layer"`` (``"resnet50:input.8"``).
    architecture: an architecture, a mapping of its fields, the name of a packaged one, or the path of its file.
    mapper: what makes the schedule: its options (``ProgramOptions(objective="energy")``), or its name with options
        beside it. None: ``program``, the mixed-integer program on a model of the machine, with a proven bound; or
        ``published``, where an option or the objective is of that one alone.
    workers: processor cores that a search may use.
    options: of the mapper, by name; None is "as by default". `docs/reference/cli.md` has those of every mapper with
        defaults and ranges; files (`constraints`, `constants`, `weights`) may be given by path. Of the program:
        `objective` (``latency``, ``energy``, ``edp``), `model` (``network``, ``analytical``, ``published-machine``),
        `constraints`, `bypass`, `pad_percent`, `remainders`, `gap`, `time_limit_seconds`, `seed`, `threads` and others.

    Returns
    -------
    A schedule that fits the architecture; its provenance says how it was made and what is proven of it.

    Raises
    ------
    InputError: a name, file, field or option is wrong, or an option is another mapper's.
    InfeasibleError: the layer fits nowhere; the message names what binds, and the smallest change that would help.
    SolverError: no schedule was found within the time limit.

    Examples
    --------
    >>> import cosa
    >>> cosa.schedule("resnet50:input.8").layer.macs  # doctest: +SKIP
    115605504
    """
    from cosa.mappers.registry import Run, candidates

    if options.get("objective") == "pareto":
        allowed = "cosa.schedule_front, which returns several schedules"
        raise InputError("has no one schedule", path="objective", value="pareto", allowed=allowed)
    found = find_layer(layer), find_architecture(architecture)
    return candidates(*found, find_options(mapper, options), Run(workers=workers))[0]


def find_options(mapper: str | MapperOptions | None, options: Mapping[str, Any] | None = None) -> MapperOptions:
    """Options of a mapper, from themselves or from its name and what is given by name.

    Raises
    ------
    InputError: there is no such mapper or option, or a value is wrong.
    """
    from cosa.mappers.registry import MapperOptions, options_of

    if not isinstance(mapper, MapperOptions):
        return options_of(mapper, options or {})
    return mapper.with_(**options) if options else mapper


def schedule_pool(
    layer: Layer | Mapping[str, Any] | str | Path,
    architecture: Architecture | Mapping[str, Any] | str | Path = "simba_4x4",
    mapper: str | MapperOptions | None = None,
    *,
    count: int,
    **options: Any,
) -> list[Schedule]:
    """The best schedules of a layer by the program, each with other factors; the best first.

    Parameters
    ----------
    layer, architecture, mapper: as `schedule` takes them; the mapper is the program.
    count: how many, 1 to 1000; fewer come back where there are no more.
    options: of the mapper program, but `remainders`.

    Returns
    -------
    Schedules; `provenance.bound` of each is below every schedule that is not among them.

    Raises
    ------
    As `schedule`.
    """
    from cosa.mappers.program_task import pool

    found = _program_options(mapper, options)
    return _several(found, lambda: pool(find_layer(layer), find_architecture(architecture), count, found))


def schedule_front(
    layer: Layer | Mapping[str, Any] | str | Path,
    architecture: Architecture | Mapping[str, Any] | str | Path = "simba_4x4",
    mapper: str | MapperOptions | None = None,
    *,
    points: int = FRONT_POINTS,
    **options: Any,
) -> list[Schedule]:
    """Schedules of a layer from the least cycles to the least energy: the least energy within ever more cycles.

    Parameters
    ----------
    layer, architecture, mapper: as `schedule` takes them; the mapper is the program.
    points: how many, 2 to 1000; fewer come back where several caps on cycles have one schedule.
    options: as for `schedule_pool`, without the objective.

    Returns
    -------
    Schedules; objective value and bound of each are energies (pJ) within its cycles.

    Raises
    ------
    As `schedule`.
    """
    from cosa.mappers.program_task import front

    found = _program_options(mapper, options)
    return _several(found, lambda: front(find_layer(layer), find_architecture(architecture), points, found))


def _several(options: MapperOptions, make: Callable[[], list[Schedule]]) -> list[Schedule]:
    from cosa.mappers.registry import signed

    return [signed(one, options) for one in make()]


def _program_options(mapper: str | MapperOptions | None, options: Mapping[str, Any]) -> ProgramOptions:
    from cosa.mappers.program import ProgramOptions

    found = find_options(mapper or "program", options)
    if not isinstance(found, ProgramOptions):
        raise InputError("makes one schedule", path="mapper", value=found.mapper, allowed="program")
    return found


def evaluate(schedule: Schedule | Mapping[str, Any] | str | Path, convention: Convention = "timeloop") -> Evaluation:
    """Access counts, energy and cycles of a schedule, analytically.

    Parameters
    ----------
    schedule: a schedule, its fields, or the path of its file.
    convention: `timeloop` counts as Timeloop does (`cosa.analytical.timeloop` has the rules); `exact` counts the words
        that a machine moves (`cosa.analytical.exact`).

    Returns
    -------
    Cycles, energies (pJ), and accesses (words) by level and tensor.

    Raises
    ------
    InputError: the file is wrong, or there is no such convention.
    InfeasibleError: the schedule does not fit its architecture.

    Examples
    --------
    >>> import cosa
    >>> schedule = cosa.schedule("resnet50:input.8")  # doctest: +SKIP
    >>> cosa.evaluate(schedule).cycles  # doctest: +SKIP
    112896
    """
    from cosa.analytical.evaluation import evaluate as evaluated

    found = Schedule.from_argument(schedule)
    require_valid(found, "evaluation")
    if found.remainders and convention == "exact":
        from cosa.analytical.cut_evaluation import evaluate_cut

        return evaluate_cut(found.layer, found.architecture, found.nest)
    return evaluated(found.padded_layer, found.architecture, found.nest, convention, padding_macs=found.padding_macs)


def breakdown(
    schedule: Schedule | Mapping[str, Any] | str | Path, objective: str | None = None, **options: Any
) -> dict[str, float]:
    """What each term of an objective of the published program says of a schedule, wherever that comes from.

    Parameters
    ----------
    schedule: a schedule, its fields, or the path of its file (also one converted from another tool).
    objective: of the mapper published (None: its default, CoSA's).
    options: its `as_published`, `precision`, `weights` and `order_level`.

    Returns
    -------
    Weighted terms by name, and the objective as ``total``; sums of logarithms to the base 2, without a unit.

    Raises
    ------
    InputError: a file, name or option is wrong.
    InfeasibleError: the schedule does not fit its architecture.
    """
    from cosa.mappers.published import PublishedTerms
    from cosa.mip.nest import breakdown as terms

    found = Schedule.from_argument(schedule)
    require_valid(found, "breakdown")
    asked = PublishedTerms.of({"objective": objective, **options})
    asked.require_levels(found.architecture)
    return terms(
        found.padded_layer,
        found.architecture,
        found.nest,
        objective=asked.objective,
        rules=asked.rules(),
        weights=asked.weights,
    )


def find_layer(layer: Layer | Mapping[str, Any] | str | Path) -> Layer:
    """A layer from a model, its fields, a file, or ``"network:layer"``.

    Raises
    ------
    InputError: no such network, layer or file, or the file is wrong.
    """
    return Layer.from_argument(layer, _named_layer, "network:layer, ")


def _named_layer(text: str | Path) -> Layer:
    network, colon, name = str(text).partition(":")
    if isinstance(text, str) and network in network_names() and (colon or not Path(text).exists()):
        return load_network(network).find(name).layer
    return Layer.from_file(text)


def find_architecture(architecture: Architecture | Mapping[str, Any] | str | Path) -> Architecture:
    """An architecture from a model, its fields, a packaged name, or a file.

    Raises
    ------
    InputError: no such name or file, or the file is wrong.
    """
    return Architecture.from_argument(architecture, load_architecture, "a packaged name, ")
