"""Read one YAML file into plain values, keeping the line of each; refuse what YAML reads astray.

YAML 1.1 takes `1:40:00` for 6000, `010` for 8 and `on` for true. What would become another value
than the one written is an error here; what becomes another type is left to the schema, which tells
the type that was found.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from perfgate.core.errors import InputError
from perfgate.core.measurement import Json
from perfgate.scenarios.problem import Keys, Problem

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is many times faster

_TAG = "tag:yaml.org,2002:"
_STRING, _INTEGER, _FLOAT = f"{_TAG}str", f"{_TAG}int", f"{_TAG}float"
_BOOLEAN, _NULL, _MERGE = f"{_TAG}bool", f"{_TAG}null", f"{_TAG}merge"
_KINDS = {
    _STRING: "text",
    _INTEGER: "the whole number",
    _FLOAT: "the number",
    _BOOLEAN: "the truth value",
    f"{_TAG}timestamp": "the date",
}
_TRUE = {"true", "yes", "on"}
_PLAIN_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_QUOTE = "quote it if it is text"


@dataclass(frozen=True)
class Document:
    """One file: its plain value and the nodes that know the lines."""

    file: Path
    value: Json
    root: yaml.Node

    def node(self, path: Keys) -> yaml.Node | None:
        """The node of the value at `path`, None if the file has none there."""
        step = _step(self.root, path)
        return step[1] if step else None

    def line(self, path: Keys) -> int | None:
        """The line of the value at `path` (of its key, if it is a mapping or list of its own)."""
        step = _step(self.root, path)
        if step is None:
            return None
        key, value = step
        shown = value if isinstance(value, yaml.ScalarNode) or key is None else key
        return int(shown.start_mark.line) + 1

    def error(self, problem: Problem, place: Keys | None = None) -> InputError:
        """The problem with its line: its own, or that of the nearest thing around it.

        Args:
            problem: what is wrong, with its path in the file.
            place: where its value is written, if elsewhere.
        """
        path = problem.path if place is None else place
        node = self.node(path)
        around = (self.line(problem.path[:end]) for end in range(len(problem.path), -1, -1))
        line = self.line(path) or next((line for line in around if line), None)
        return problem.error(self.file, line, None if node is None else describe(node))


class _Refused(Exception):
    """A value that cannot be taken; the place is added where it is known."""

    def __init__(self, problem: str, expected: str, hint: str | None = None) -> None:
        self.problem, self.expected, self.hint = problem, expected, hint


def read_document(
    file: Path,
    expected: str = "schema_version and scenarios",
    hint: str = "write a scenario (docs/reference/scenarios.md), or delete the file",
) -> tuple[Document | None, list[InputError]]:
    """Read `file`: the document, or None if nothing can be made of it, and all that is wrong.

    Args:
        file: the file.
        expected: what an empty one should hold.
        hint: how to mend an empty one.
    """
    try:
        text = file.read_bytes().decode("utf-8")
    except OSError as error:
        return None, [InputError("cannot be read", file=file, found=error.strerror)]
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{error.object[error.start]:02x}"
        return None, [InputError("not UTF-8 text", file=file, line=line, found=found)]
    try:
        root = _compose(text)
    except yaml.YAMLError as error:
        return None, [_broken(file, text, error)]
    if root is None:
        return None, [InputError("empty file", file=file, expected=expected, hint=hint)]
    reader = _Reader(file)
    value = reader.read(root)
    return Document(file, value, root), reader.errors


def describe(node: yaml.Node) -> str:
    """What a node is, for messages: ``the whole number 5``, ``text '1e3'``, ``a list``."""
    if not isinstance(node, yaml.ScalarNode):
        return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"
    if node.tag == _NULL:
        return "nothing"
    shown = repr(node.value) if node.tag == _STRING else node.value
    return f"{_KINDS.get(node.tag, 'a value')} {shown}"


def _compose(text: str) -> yaml.Node | None:
    loader = _Loader(text)
    try:
        root: yaml.Node | None = loader.get_single_node()
    finally:
        loader.dispose()
    return root


def _broken(file: Path, text: str, error: yaml.YAMLError) -> InputError:
    line, found, hint = None, str(error), None
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        line, column = error.problem_mark.line, error.problem_mark.column
        found = f"{error.problem} (column {column + 1})"
        if text.split("\n")[line].lstrip(" ").startswith("\t"):
            hint = "indent with spaces, not tabs"
    elif isinstance(error, yaml.reader.ReaderError):
        line, found = text.encode().count(b"\n", 0, error.position), error.reason
    return InputError(
        "broken YAML", file=file, line=None if line is None else line + 1, found=found, hint=hint
    )


class _Reader:
    """Turns nodes into plain values; collects errors and goes on."""

    def __init__(self, file: Path) -> None:
        self.errors: list[InputError] = []
        self._file = file
        self._made: dict[int, Json] = {}  # anchors: a node that is used again is read once
        self._open: set[int] = set()

    def read(self, node: yaml.Node, path: Keys = ()) -> Json:
        """The node's plain value; of something refused, the text as written."""
        if isinstance(node, yaml.ScalarNode):
            if node.tag == _STRING:
                return str(node.value)
            try:
                return _scalar(node)
            except _Refused as refused:
                self._refuse(node, path, refused, node.value)
                return str(node.value)
        key = id(node)
        if key in self._open:
            self._refuse(node, path, _Refused("a value that contains itself", "no such loop"))
            return None
        if key not in self._made:
            self._open.add(key)
            if isinstance(node, yaml.MappingNode):
                self._made[key] = self._mapping(node, path)
            else:
                self._made[key] = [
                    self.read(item, (*path, position)) for position, item in enumerate(node.value)
                ]
            self._open.remove(key)
        return self._made[key]

    def _mapping(self, node: yaml.MappingNode, path: Keys) -> Json:
        made: dict[str, Json] = {}
        for key, value in node.value:
            name = key.value
            if key.tag != _STRING:
                self._refuse(key, path, _bad_key(key), describe(key))
            elif name in made:
                first = next(k for k, _ in node.value if k.value == name).start_mark.line + 1
                refused = _Refused("field given twice", f"one {name}", f"see line {first}")
                self._refuse(key, (*path, name), refused)
            else:
                made[name] = self.read(value, (*path, name))
        return made

    def _refuse(self, node: yaml.Node, path: Keys, why: _Refused, found: object = None) -> None:
        problem = Problem(path, why.problem, found, why.expected, why.hint)
        self.errors.append(problem.error(self._file, node.start_mark.line + 1))


def _bad_key(key: yaml.Node) -> _Refused:
    if key.tag == _MERGE:
        return _Refused(
            "YAML merge keys are not used here",
            "fields, each with its own value",
            "what scenarios share belongs into the file's defaults block",
        )
    return _Refused("a field's name must be text", "a name", "quote the name")


def _scalar(node: yaml.ScalarNode) -> Json:
    """The value of a scalar that is not text.

    Raises:
        _Refused: YAML would make another value of it than the one written.
    """
    text, tag = node.value, node.tag
    if tag == _INTEGER:
        if _PLAIN_INTEGER.fullmatch(text):
            return int(text)
        if ":" in text:
            raise _Refused(
                "YAML reads this as a number in base 60",
                "a plain decimal number",
                f"write a time in seconds; {_QUOTE}",
            )
        raise _Refused("YAML reads this as another number", "a plain decimal number", _QUOTE)
    if tag == _FLOAT:
        return _float(text)
    if tag == _BOOLEAN:
        return text.lower() in _TRUE
    if tag == _NULL:
        return None
    raise _Refused(
        "a kind of value that scenarios do not have", "text, a number, true or false", _QUOTE
    )


def _float(text: str) -> float:
    if ":" in text or "_" in text:
        raise _Refused("YAML reads this as another number", "a plain decimal number", _QUOTE)
    value = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(value):
        raise _Refused("not a finite number", "a plain decimal number")
    return value


def _step(root: yaml.Node, path: Keys) -> tuple[yaml.Node | None, yaml.Node] | None:
    """Key node (of the last mapping step) and value node at `path`; None if it is not there."""
    key: yaml.Node | None = None
    value = root
    for part in path:
        step = next((pair for pair in _pairs(value) if pair[0] == part), None)
        if step is None:
            return None
        _, key, value = step
    return key, value


def _pairs(node: yaml.Node) -> Iterator[tuple[str | int, yaml.Node | None, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        yield from ((key.value, key, value) for key, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        yield from ((position, None, item) for position, item in enumerate(node.value))
