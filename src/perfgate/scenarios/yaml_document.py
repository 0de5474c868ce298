"""Read one YAML file into plain values, keeping the line of each; refuse what YAML reads astray.

YAML 1.1 takes `1:40:00` for 6000, `010` for 8 and `on` for true. What would become another value
than the one written is an error here; what becomes another type is left to the schema, which tells
the type that was found.
"""

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from perfgate.core.errors import InputError
from perfgate.core.measurement import Json
from perfgate.core.untrusted_files import read_input
from perfgate.scenarios.problem import Keys, Problem
from perfgate.scenarios.yaml_limits import (
    DEEPEST,
    LARGEST_FILE,
    LONGEST_NUMBER,
    MOST_ERRORS,
    MOST_VALUES,
    compose,
    too_many_values,
)

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
_SHOWN = 300  # characters of a value in a message
_QUOTE = "quote it if it is text"


@dataclass(frozen=True)
class Document:
    """One file: its plain value and the nodes that know the lines."""

    file: Path
    value: Json
    root: yaml.Node
    _inside: dict[int, "_Inside"] = field(default_factory=dict, repr=False, compare=False)

    def node(self, path: Keys) -> yaml.Node | None:
        """The node of the value at `path`, None if the file has none there."""
        step = self._step(path)
        return step[1] if step else None

    def line(self, path: Keys) -> int | None:
        """The line of the value at `path` (of its key, if it is a mapping or list of its own)."""
        step = self._step(path)
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

    def _step(self, path: Keys) -> "_Step | None":
        """Key node (of the last mapping step) and value node at `path`; None: it is not there."""
        step: _Step = (None, self.root)
        for part in path:
            node = step[1]
            if id(node) not in self._inside:
                self._inside[id(node)] = _inside(node)
            found = self._inside[id(node)].get(part)
            if found is None:
                return None
            step = found
        return step


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
        hint: how to fix an empty one.
    """
    try:
        text = read_input(file, LARGEST_FILE, "YAML file").decode("utf-8")
    except InputError as error:
        return None, [error]
    except OSError as error:
        return None, [InputError("cannot be read", file=file, found=error.strerror)]
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{error.object[error.start]:02x}"
        return None, [InputError("not UTF-8 text", file=file, line=line, found=found)]
    try:
        root = compose(text, file)
    except InputError as error:
        return None, [error]
    except yaml.YAMLError as error:
        return None, [_broken(file, text, error)]
    if root is None:
        return None, [InputError("empty file", file=file, expected=expected, hint=hint)]
    reader = _Reader(file)
    value = reader.read(root)
    if reader.count > MOST_VALUES:
        return None, [too_many_values(reader.count, file, "aliases")]
    return Document(file, value, root), reader.errors


def read_value(text: str) -> Json:
    """The single value that `text` is, as one in a file.

    Raises:
        InputError: it is a list or mapping, or YAML would make another value of it.
        yaml.YAMLError: it is not YAML.
    """
    node = compose(text)
    if node is None:
        return None
    if not isinstance(node, yaml.ScalarNode):
        raise InputError("not a single value", found=describe(node))
    try:
        return str(node.value) if node.tag == _STRING else _scalar(node)
    except _Refused as refused:
        found = describe(node)
        raise InputError(
            refused.problem, found=found, expected=refused.expected, hint=refused.hint
        ) from None


def describe(node: yaml.Node) -> str:
    """What a node is, for messages: ``the whole number 5``, ``text '1e3'``, ``a list``."""
    if not isinstance(node, yaml.ScalarNode):
        return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"
    if node.tag == _NULL:
        return "nothing"
    shown = node.value if len(node.value) <= _SHOWN else f"{node.value[:_SHOWN]}…"
    shown = repr(shown) if node.tag == _STRING else shown
    return f"{_KINDS.get(node.tag, 'a value')} {shown}"


def _broken(file: Path, text: str, error: yaml.YAMLError) -> InputError:
    line, found, hint = None, str(error), None
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        line, column = error.problem_mark.line, error.problem_mark.column
        found = f"{error.problem} (column {column + 1})"
        rest = text.split("\n")[line:]  # empty where the end is what was wrong
        if rest and rest[0].lstrip(" ").startswith("\t"):
            hint = "indent with spaces, not tabs"
    elif isinstance(error, yaml.reader.ReaderError):
        line, found = text.encode().count(b"\n", 0, error.position), error.reason
    return InputError(
        "broken YAML", file=file, line=None if line is None else line + 1, found=found, hint=hint
    )


class _Reader:
    """Turns nodes into plain values; collects errors and goes on.

    Attributes:
        errors: what is wrong, in order.
        count: how many values there are; one that an alias repeats counts each time.
    """

    def __init__(self, file: Path) -> None:
        self.errors: list[InputError] = []
        self.count = 0
        self._file = file
        self._made: dict[int, Json] = {}  # anchors: a node that is used again is read once
        self._counts: dict[int, int] = {}
        self._open: set[int] = set()

    def read(self, node: yaml.Node, path: Keys = ()) -> Json:
        """The node's plain value; of something refused, the text as written."""
        self.count += 1
        if isinstance(node, yaml.ScalarNode):
            if node.tag == _STRING:
                return str(node.value)
            try:
                return _scalar(node)
            except _Refused as refused:
                self._refuse(node, path, refused, node.value[:_SHOWN])
                return str(node.value)
        key = id(node)
        if key in self._open:
            self._refuse(node, path, _Refused("a value that contains itself", "no such loop"))
            return None
        if key in self._made:
            self.count += self._counts[key]
        elif len(path) >= DEEPEST:
            self._refuse(node, path, _Refused("nested too deep", f"at most {DEEPEST} levels"))
            self._made[key], self._counts[key] = None, 0
        else:
            before = self.count
            self._open.add(key)
            if isinstance(node, yaml.MappingNode):
                self._made[key] = self._mapping(node, path)
            else:
                self._made[key] = [
                    self.read(item, (*path, position)) for position, item in enumerate(node.value)
                ]
            self._open.remove(key)
            self._counts[key] = self.count - before
        return self._made[key]

    def _mapping(self, node: yaml.MappingNode, path: Keys) -> Json:
        made: dict[str, Json] = {}
        first: dict[str, int] = {}
        for key, value in node.value:
            name = key.value
            self.count += 1
            if key.tag != _STRING:
                self._refuse(key, path, _bad_key(key), describe(key))
            elif name in made:
                refused = _Refused("field given twice", f"one {name}", f"see line {first[name]}")
                self._refuse(key, (*path, name), refused)
            else:
                first[name] = key.start_mark.line + 1
                made[name] = self.read(value, (*path, name))
        return made

    def _refuse(self, node: yaml.Node, path: Keys, why: _Refused, found: object = None) -> None:
        if len(self.errors) == MOST_ERRORS:
            return
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
    if tag in (_INTEGER, _FLOAT) and len(text) > LONGEST_NUMBER:
        raise _Refused("a number of too many digits", f"at most {LONGEST_NUMBER}", _QUOTE)
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


_Step = tuple[yaml.Node | None, yaml.Node]
_Inside = dict[str | int, _Step]


def _inside(node: yaml.Node) -> _Inside:
    """What a mapping or list holds: name or position → key node and value node."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: (key, value) for key, value in reversed(node.value)}
    if isinstance(node, yaml.SequenceNode):
        return {position: (None, item) for position, item in enumerate(node.value)}
    return {}
