"""Parameters of commands from models of options: flags, help, completion; and what of them was given.

A command states its models (`takes`) and gets one `Given`, from which it takes each model, errors named by flags.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, TypeVar

import typer
from pydantic.fields import FieldInfo

from cosa.common.options import Options, choices_of, details, flag_of, flags, flags_of, is_file, plain_type

Command = Callable[..., Any]
OptionsT = TypeVar("OptionsT", bound=Options)
Owner = tuple[str, FieldInfo]


class Given:
    """What a command line gave of its options, by name of the field; `models`: those that the command takes.

    `owned`: what was given of the options of the models that it takes beside its own (see `takes`).
    """

    def __init__(
        self, values: Mapping[str, Any], models: Sequence[type[Options]], owned: Sequence[type[Options]] = ()
    ) -> None:
        self.values, self.models = dict(values), (*models, *owned)
        self.owned = {
            name: value for name, value in values.items() if any(name in model.model_fields for model in owned)
        }

    def of(self, model: type[OptionsT]) -> OptionsT:
        """The options of a model.

        Raises
        ------
        InputError: a value is wrong; the flag is named.
        """
        with self.flags():
            return model.of({name: value for name, value in self.values.items() if name in model.model_fields})

    @property
    def files(self) -> dict[str, Any]:
        """Files that options name, by flag: outputs must not overwrite them."""
        fields = [item for model in self.models for item in model.model_fields.items()]
        return {
            flag_of(name, field): self.values[name] for name, field in fields if name in self.values and is_file(field)
        }

    @contextmanager
    def flags(self, **others: str) -> Iterator[None]:
        """Errors that name options of the models name their flags instead; `others`: flags of further names."""
        with flags(*self.models, **others):
            yield


def takes(*models: type[Options], owned: Mapping[str, type[Options]] | None = None) -> Callable[[Command], Command]:
    """Let a command take the options of models, as one argument ``given``.

    Parameters
    ----------
    owned: further models, by the name of whose they are; an option that not all of them have says so in its help.
    """
    fields: dict[str, list[Owner]] = {}
    for model in models:
        fields |= {name: [("", field)] for name, field in model.model_fields.items()}
    for owner, model in (owned or {}).items():
        for name, field in model.model_fields.items():
            fields.setdefault(name, []).append((owner, field))
    parameters = [_parameter(name, owners, len(owned or ())) for name, owners in fields.items()]
    others = tuple((owned or {}).values())

    def decorate(command: Command) -> Command:
        def called(**arguments: Any) -> Any:
            given = {name: arguments.pop(name) for name in fields}
            known = {name: value for name, value in given.items() if value is not None}
            return command(**arguments, given=Given(known, models, others))

        own = [one for one in inspect.signature(command, eval_str=True).parameters.values() if one.name != "given"]
        called.__name__, called.__doc__ = command.__name__, command.__doc__
        signature = [*own, *parameters]
        called.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in signature}
        return called

    return decorate


def _parameter(name: str, owners: Sequence[Owner], of_all: int) -> inspect.Parameter:
    """One keyword that is None unless it is given."""
    field = owners[0][1]
    extra, kind = details(field), plain_type(field.annotation)
    words = list(dict.fromkeys(word for _, one in owners for word in choices_of(one)))
    flags = list(flags_of(name, field))
    switch = kind is bool
    if switch and "off" in extra:
        flags = ["/".join((flags[0], extra["off"]))]
    few = len(words) < 6
    shown = "|".join(words) if words and few else "NAME" if words else "FILE" if is_file(field) else None
    option = typer.Option(
        *flags,
        help=str(field.description) + _owned(owners, of_all) + _default(owners),
        show_default=False,
        metavar=None if switch else extra.get("metavar") or shown or extra.get("unit", "N").upper(),
        autocompletion=_completion(extra.get("complete"), words),
    )
    python: Any = kind if kind in (int, float, bool) else str
    annotation = Annotated[python | None, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _owned(owners: Sequence[Owner], of_all: int) -> str:
    names = [owner for owner, _ in owners if owner]
    return f" Of {', '.join(names)}." if names and len(names) < of_all else ""


def _default(owners: Sequence[Owner]) -> str:
    """The default, where it is worth a word: that of most owners, then by name those that have another."""
    found = [(owner, str(field.default)) for owner, field in owners if type(field.default) in (int, float, str)]
    if not found:
        return ""
    values = [value for _, value in found]
    usual = max(values, key=values.count)
    others = [f"{owner} {value}" for owner, value in found if value != usual]
    return f" [{'; '.join([usual, *others])}]"


def _completion(complete: str | None, words: Sequence[str]) -> Callable[[str], list[str]] | None:
    if complete is None and not words:
        return None

    def listed(incomplete: str) -> list[str]:
        known = list(words)
        if complete is not None:
            module, _, function = complete.partition(":")
            known = list(getattr(import_module(module), function)())
        return [word for word in known if word.startswith(incomplete)]

    return listed
