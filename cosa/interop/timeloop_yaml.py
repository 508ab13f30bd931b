"""YAML as Timeloop files use it.

What YAML 1.1 would silently change is kept as written: ``N``, ``Y``, ``NO``, ``on`` stay names (only true and false are
truth values), ``010`` is ten, dates stay text. Tags (``!Container``) are kept with their mapping. ``-`` and ``_`` in
keys are the same, so a key given in both spellings is given twice. ``<<`` merges a mapping into the one it stands in,
``<<<`` does so at every depth.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from cosa.common.errors import InputError
from cosa.common.files import MAX_DEPTH, MAX_ENTRIES, read_text
from cosa.interop.places import Where

_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_TEMPLATE = re.compile(r"^[^#\n]*(\{\{|\{%)", re.MULTILINE)
_NOTHING = ("", "~", "null", "Null", "NULL")
_STANDARD = "tag:yaml.org,2002:"


class TaggedDict(dict[str, Any]):
    """A mapping with its tag, without the exclamation mark (empty: none)."""

    tag: str = ""


class _Composer(yaml.SafeLoader):
    """Only composes nodes: scalars stay the text they are."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 (the base class's own attribute)


def read_yaml(path: str, where: Where) -> Any:
    """Plain data of a Timeloop file, mappings as `TaggedDict` with ``_`` in keys.

    Raises
    ------
    InputError: not readable, not YAML, a template that still has to be rendered, or a key given twice.
    """
    return parse_yaml(read_text(path), where)


def parse_yaml(text: str, where: Where) -> Any:
    """As `read_yaml`, from text."""
    if _TEMPLATE.search(text):
        message = "a Jinja template, which cannot be read"
        raise where.error(message, allowed="the rendered file (Timeloop's front end writes it)")
    try:
        documents = list(yaml.compose_all(text, Loader=_Composer))
    except RecursionError:
        raise where.error("nested too deeply", allowed=f"at most {MAX_DEPTH} levels") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise where.error(f"not valid YAML{at}: {' '.join(str(problem).split())}") from None
    build = _Builder(where)
    parts = [build.value(node, 0) for node in documents if node is not None]
    if len(parts) <= 1:
        return parts[0] if parts else None
    whole = TaggedDict()
    for part in parts:
        if not isinstance(part, dict) or set(part) & set(whole):
            raise where.error("several documents that do not make one mapping", allowed="one document")
        whole.update(part)
    return whole


class _Builder:
    """Values of composed nodes; counts them, because references can make a small text endless."""

    def __init__(self, where: Where) -> None:
        self.where, self.left = where, MAX_ENTRIES

    def value(self, node: yaml.Node, depth: int) -> Any:
        self.left -= 1
        if depth > MAX_DEPTH or self.left < 0:
            too_deep = depth > MAX_DEPTH
            allowed = f"at most {MAX_DEPTH} levels" if too_deep else f"at most {MAX_ENTRIES} entries"
            raise self.where.error("nested too deeply" if too_deep else "too large", allowed=allowed)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(entry, depth + 1) for entry in node.value]
        assert isinstance(node, yaml.ScalarNode)
        tag = _tag(node)
        if tag and not node.value.strip():
            result = TaggedDict()
            result.tag = tag
            return result
        return self.scalar(node)

    def mapping(self, node: yaml.MappingNode, depth: int) -> TaggedDict:
        result = TaggedDict()
        result.tag = _tag(node)
        merged: list[tuple[bool, Any]] = []
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.fault(key_node, "a key must be text")
            key = key_node.value.strip()
            if key in ("<<", "<<<"):
                merged.append((key == "<<<", self.value(value_node, depth + 1)))
                continue
            key = key.replace("-", "_")
            if key in result:
                raise self.fault(key_node, f"key {key!r} is given twice (- and _ are the same)")
            result[key] = self.value(value_node, depth + 1)
        for deep, value in merged:
            for source in value if isinstance(value, list) else [value]:
                if not isinstance(source, dict):
                    raise self.fault(node, "only mappings can be merged")
                _merge(result, source, deep)
        return result

    def scalar(self, node: yaml.ScalarNode) -> Any:
        text: str = node.value
        if node.style is not None:
            return text
        if text in _NOTHING:
            return None
        if text in _TRUTH:
            return _TRUTH[text]
        if _INT.fullmatch(text):
            digits = text.lstrip("+-")
            if len(digits) > 40:
                raise self.fault(node, "a number with far too many digits")
            if len(digits) > 1 and digits[0] == "0" and int(text) > 7:
                self.where.note(
                    f"line {node.start_mark.line + 1}: {text} is read as {int(text)}, not as an octal number"
                )
            return int(text)
        if _BASED.fullmatch(text) and len(text) <= 40:
            return int(text, 0)
        if _FLOAT.fullmatch(text):
            return float(text)
        if text.lower() in (".inf", "+.inf"):
            return float("inf")
        return text

    def fault(self, node: yaml.Node, message: str) -> InputError:
        line, column = node.start_mark.line + 1, node.start_mark.column + 1
        return self.where.error(f"not valid at line {line}, column {column}: {message}")


def _tag(node: yaml.Node) -> str:
    tag = str(node.tag or "")
    return "" if tag.startswith(_STANDARD) else tag.lstrip("!")


def _merge(target: TaggedDict, source: dict[str, Any], deep: bool) -> None:
    for key, value in source.items():
        if key not in target:
            target[key] = value
        elif deep and isinstance(target[key], TaggedDict) and isinstance(value, dict):
            inner = TaggedDict(target[key])
            inner.tag = target[key].tag
            _merge(inner, value, deep)
            target[key] = inner
