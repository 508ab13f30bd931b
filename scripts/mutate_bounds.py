"""Falsify every term of every bound, one at a time, and see whether the tests notice.

    python scripts/mutate_bounds.py            # all: a table, exit 1 where a mutant survives
    python scripts/mutate_bounds.py program network --only "bandwidth"

A proven bound that no test pins is worth nothing: too large, and it proves what is false; too small, and nobody sees
how much it gave away. Each mutant changes a copy of the packages in a temporary directory, and runs the tests of its
group
there until one fails. The terms are data, in `bound_mutants`; those that are left alike on purpose are listed with
the reason.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bound_mutants import MUTANTS, TESTS, Term

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("arch_configs", "cosa", "nocsim", "dram", "tests")


@dataclass(frozen=True)
class Mutant:
    """A term, what is done to it, and where it stands."""

    group: str
    term: Term
    name: str
    line: int

    def __str__(self) -> str:
        part = " ".join(self.term.part.split())
        part = part if len(part) <= 60 else f"{part[:57]}..."
        return f"{Path(self.term.file).name}:{self.line:<4} {part:<60} {self.name:<12}"


def main() -> int:
    arguments = _arguments()
    mutants = [
        mutant
        for group in arguments.groups or MUTANTS
        for mutant in every_mutant(group)
        if not arguments.only or arguments.only in mutant.term.text
    ]
    survived = 0
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory)
        for package in PACKAGES:
            shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        started = time.perf_counter()
        for group in dict.fromkeys(mutant.group for mutant in mutants):
            if (failed := run(copy, group)) is not None:
                print(f"{group}: the tests fail without a mutant: {failed}", flush=True)
                return 2
        for mutant in mutants:
            why = mutant.term.alike.get(mutant.name)
            if why is not None and not arguments.alike:
                print(f"{mutant} alike: {why}", flush=True)
                continue
            begun = time.perf_counter()
            killer = killed_by(copy, mutant)
            survived += killer is None and why is None
            told = "SURVIVED" if killer is None else f"killed by {killer}"
            told += "" if why is None else f" (said to be alike: {why})"
            print(f"{mutant} {told} ({time.perf_counter() - begun:.1f} s)", flush=True)
        seconds = time.perf_counter() - started
    print(f"{len(mutants)} mutants, {survived} survived, {seconds:.0f} s")
    return int(survived > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", choices=[*MUTANTS, []], help="groups of terms (default: all)")
    parser.add_argument("--only", default="", help="terms whose passage has this text")
    parser.add_argument("--alike", action="store_true", help="run those that are said to be alike, too")
    return parser.parse_args()


def every_mutant(group: str) -> Iterator[Mutant]:
    """All mutants of a group.

    Raises
    ------
    ValueError: a passage is not in its file, or there several times.
    """
    for term in MUTANTS[group]:
        text = (ROOT / term.file).read_text()
        if text.count(term.source) != 1:
            raise ValueError(f"{term.file} has {text.count(term.source)} of: {term.source}")
        mutants = term.mutants()
        if unknown := set(term.alike) - set(mutants):
            raise ValueError(f"no such mutants {unknown} of: {term.source}")
        at = text.index(term.source) + term.text.index("<<")
        for name in mutants:
            yield Mutant(group, term, name, text[:at].count("\n") + 1)


def killed_by(copy: Path, mutant: Mutant) -> str | None:
    """The first test that fails on a mutant in the copy of the packages; None: none does."""
    file = copy / mutant.term.file
    original = file.read_text()
    file.write_text(original.replace(mutant.term.source, mutant.term.mutants()[mutant.name]))
    try:
        return run(copy, mutant.group)
    finally:
        file.write_text(original)


def run(copy: Path, group: str) -> str | None:
    """The first test of a group that fails in a copy of the packages.

    In a process of its own that has what does not change imported: the solver and all that it needs.
    """
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        _work(copy, TESTS[group], into)
    os.close(into)
    with os.fdopen(out) as answer:
        found = answer.read()
    _, status = os.waitpid(child, 0)
    if status != 0 and not found:
        return "the end of the process"
    return found or None


def _work(copy: Path, tests: Sequence[str], into: int) -> None:
    """Run tests until one fails, say which, and end."""
    import pytest

    class First:
        found = ""

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed and not self.found:
                self.found = report.nodeid.rpartition("::")[2]

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed and not self.found:
                self.found = f"collecting {report.nodeid}"

    os.chdir(copy)
    sys.path[:] = [
        str(copy),
        *(path for path in sys.path if Path(path or ".").resolve() not in (ROOT, ROOT / "scripts")),
    ]
    first = First()
    code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests], [first])
    if code not in (0, 1) and not first.found:
        first.found = f"pytest: {code}"
    os.write(into, first.found.encode())
    os._exit(0)


if __name__ == "__main__":
    # Of a mutant nothing may be left behind for the next; compiled kernels, which none changes, are shared.
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache
        import highspy  # noqa: F401
        import numba  # noqa: F401
        import numpy  # noqa: F401
        import pyomo.core
        import pyomo.repn.standard_repn  # noqa: F401

        sys.exit(main())
