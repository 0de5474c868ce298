"""Read one YAML file into plain values, keeping the line of each; refuse what YAML reads astray.

YAML 1.1 takes `1:40:00` for 6000, `010` for 8 and `on` for true. What would become another value
than the one written is an error here; what becomes another type is left to the schema, which tells
the type that was found.

A text is looked at before libyaml makes nodes of it: its composer calls itself for each level and
ends the process with a segmentation fault at some 20,000 of them, which a file of 20 kB can hold.
The limits are far above what any real file needs (docs/reference/settings.md).
"""

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import yaml

from perfgate.core.errors import InputError
from perfgate.core.files.untrusted_files import read_input
from perfgate.core.measurement import Json

LARGEST_FILE = 2**20  # bytes: some 500 scenarios as they are written by hand
DEEPEST = 50  # levels: a scenario has six
MOST_VALUES = 100_000  # once aliases and defaults stand everywhere they are used
MOST_ERRORS = 500  # of one file that are told
LONGEST_NUMBER = 300  # characters: the largest float has 309 digits

_LIMITS = "(docs/reference/settings.md)"
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is many times faster

_TAG = "tag:yaml.org,2002:"
_KINDS = {
    f"{_TAG}str": "text",
    f"{_TAG}int": "the whole number",
    f"{_TAG}float": "the number",
    f"{_TAG}bool": "the truth value",
    f"{_TAG}timestamp": "the date",
}
_RESOLVER = yaml.resolver.Resolver()
_TRUE = {"true", "yes", "on"}
_PLAIN_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_SHOWN = 300  # characters of a value in a message
_QUOTE = "quote it if it is text"

Keys = tuple[str | int, ...]
_Step = tuple[yaml.Node | None, yaml.Node]
# Of each mapping and list: name or position → key node and value node.
_Inside = dict[int, dict[str | int, _Step]]


@dataclass(frozen=True)
class Problem:
    """What is wrong at one path of a value; the document adds file and line.

    Attributes:
        path: keys and positions from the file (or a scenario in it) down to the value.
        problem: what is wrong, in a few words.
        found: what is there; None: left out of the message.
        expected: what may be there.
        hint: how to fix it.
    """

    path: Keys
    problem: str
    found: object = None
    expected: str | None = None
    hint: str | None = None

    @classmethod
    def of(cls, path: Keys, error: InputError) -> Self:
        """What an error says is wrong, at a path."""
        return cls(path, error.problem, error.found, error.expected, error.hint)

    def error(
        self, file: Path | None = None, line: int | None = None, found: object = None
    ) -> InputError:
        """The problem with its place; `found` is what is there, where the problem does not say."""
        return InputError(
            self.problem,
            file=file,
            line=line,
            field=dotted(self.path) or None,
            found=found if self.found is None else self.found,
            expected=self.expected,
            hint=self.hint,
        )


def dotted(path: Keys) -> str:
    """The path as people write it, e.g. ``scenarios[2].engine.settings.tp``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


@dataclass(frozen=True)
class Document:
    """One file: its plain value and the nodes that know the lines."""

    file: Path
    value: Json
    root: yaml.Node
    _inside: _Inside = field(repr=False, compare=False)

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

    def _step(self, path: Keys) -> _Step | None:
        """Key node (of the last mapping step) and value node at `path`; None: it is not there."""
        step: _Step | None = (None, self.root)
        for part in path:
            step = self._inside.get(id(step[1]), {}).get(part) if step else None
        return step


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
        root = _root(file)
        if root is None:
            raise InputError("empty file", file=file, expected=expected, hint=hint)
        reader = _Reader(file)
        value = reader.read(root)
        if reader.count > MOST_VALUES:
            raise too_many_values(reader.count, file, "aliases")
    except InputError as error:
        return None, [error]
    return Document(file, value, root, reader.inside), reader.errors


def _root(file: Path) -> yaml.Node | None:
    try:
        text = read_input(file, LARGEST_FILE, "YAML file").decode("utf-8")
        return compose(text, file)
    except OSError as error:
        raise InputError("cannot be read", file=file, found=error.strerror) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{error.object[error.start]:02x}"
        raise InputError("not UTF-8 text", file=file, line=line, found=found) from None
    except yaml.YAMLError as error:
        raise _broken(file, text, error) from None


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
    return _scalar(node)


def describe(node: yaml.Node) -> str:
    """What a node is, for messages: ``the whole number 5``, ``text '1e3'``, ``a list``."""
    if not isinstance(node, yaml.ScalarNode):
        return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"
    if node.tag == f"{_TAG}null":
        return "nothing"
    shown = node.value if len(node.value) <= _SHOWN else f"{node.value[:_SHOWN]}…"
    kind = _KINDS.get(node.tag, "a value")
    return f"{kind} {shown!r}" if kind == "text" else f"{kind} {shown}"


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
        inside: what each mapping and list holds.
    """

    def __init__(self, file: Path) -> None:
        self.errors: list[InputError] = []
        self.count = 0
        self.inside: _Inside = {}
        self._file = file
        # Of each list and mapping, which an alias may repeat: its value and how many values it
        # holds; None while it is read.
        self._made: dict[int, tuple[Json, int] | None] = {}

    def read(self, node: yaml.Node, path: Keys = ()) -> Json:
        """The node's plain value; of something refused, the text as written."""
        self.count += 1
        if isinstance(node, yaml.ScalarNode):
            try:
                return _scalar(node)
            except InputError as refused:
                self._refuse(node, path, refused, node.value[:_SHOWN])
                return str(node.value)
        key, before = id(node), self.count
        if key not in self._made:
            self._made[key] = None
            self._made[key] = self._collection(node, path), self.count - before
        elif (made := self._made[key]) is None:
            loop = InputError("a value that contains itself", expected="no such loop")
            self._refuse(node, path, loop)
            return None
        else:
            self.count += made[1]
        made = self._made[key]
        return made and made[0]

    def _collection(self, node: yaml.Node, path: Keys) -> Json:
        if len(path) >= DEEPEST:
            deep = InputError("nested too deep", expected=f"at most {DEEPEST} levels")
            self._refuse(node, path, deep)
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        self.inside[id(node)] = {number: (None, item) for number, item in enumerate(node.value)}
        return [self.read(item, (*path, number)) for number, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: Keys) -> Json:
        made: dict[str, Json] = {}
        inside = self.inside.setdefault(id(node), {})
        for key, value in node.value:
            name = key.value
            self.count += 1
            if key.tag != f"{_TAG}str":
                self._refuse(key, path, _bad_key(key), describe(key))
            elif name in made:
                first, _ = inside[name]
                hint = f"see line {first.start_mark.line + 1}" if first else None
                twice = InputError("field given twice", expected=f"one {name}", hint=hint)
                self._refuse(key, (*path, name), twice)
            else:
                inside[name] = key, value
                made[name] = self.read(value, (*path, name))
        return made

    def _refuse(self, node: yaml.Node, path: Keys, why: InputError, found: object = None) -> None:
        if len(self.errors) < MOST_ERRORS:
            problem = Problem.of(path, why)
            self.errors.append(problem.error(self._file, node.start_mark.line + 1, found))


def _bad_key(key: yaml.Node) -> InputError:
    if key.tag == f"{_TAG}merge":
        expected = "fields, each with its own value"
        hint = "what scenarios share belongs into the file's defaults block"
        return InputError("YAML merge keys are not used here", expected=expected, hint=hint)
    problem = "a field's name must be text"
    return InputError(problem, expected="a name", hint="quote the name")


def _scalar(node: yaml.ScalarNode) -> Json:
    """The value of a scalar.

    Raises:
        InputError: YAML would make another value of it than the one written.
    """
    text, kind = str(node.value), node.tag.removeprefix(_TAG)
    if kind == "str":
        return text
    plain = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    if plain != node.tag or kind not in ("int", "float", "bool", "null"):
        problem = "a kind of value that scenarios do not have"
        raise InputError(problem, expected="text, a number, true or false", hint=_QUOTE)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in _TRUE
    return _number(text, is_whole=kind == "int")


def _number(text: str, *, is_whole: bool) -> int | float:
    expected = "a plain decimal number"
    if len(text) > LONGEST_NUMBER:
        most = f"at most {LONGEST_NUMBER}"
        raise InputError("a number of too many digits", expected=most, hint=_QUOTE)
    if is_whole and _PLAIN_INTEGER.fullmatch(text):
        return int(text)
    if is_whole and ":" in text:
        hint = f"write a time in seconds; {_QUOTE}"
        raise InputError("YAML reads this as a number in base 60", expected=expected, hint=hint)
    if is_whole or ":" in text or "_" in text:
        raise InputError("YAML reads this as another number", expected=expected, hint=_QUOTE)
    value = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(value):
        raise InputError("not a finite number", expected=expected)
    return value


def compose(text: str, file: Path | None = None) -> yaml.Node | None:
    """The root node of the one document in `text`; None: it holds nothing.

    Args:
        text: at most `LARGEST_FILE` long.
        file: where it is from, for messages.

    Raises:
        InputError: it is nested too deep.
        yaml.YAMLError: it is not YAML.
    """
    _require_shallow(text, file)
    loader = Loader(text)
    try:
        root: yaml.Node | None = loader.get_single_node()
    finally:
        loader.dispose()
    return root


def too_many_values(count: int, file: Path, repeated_by: str) -> InputError:
    """The error of a file of more than `MOST_VALUES`, its aliases or defaults repeated."""
    return InputError(
        "too many values",
        file=file,
        found=f"{count:,} values, counting each time what {repeated_by} repeat",
        expected=f"at most {MOST_VALUES:,} {_LIMITS}",
    )


def _require_shallow(text: str, file: Path | None) -> None:
    """Refuse a text that is too deep; of a file that people write that is excluded at a glance.

    A block on each level begins in a column of its own, but a list in a mapping may share its
    column; a bracket can open a list with a mapping in it.
    """
    longest = max(map(len, text.split("\n")))
    if 2 * (longest + text.count("[") + text.count("{")) <= 2000:
        return
    depth = 0
    for event in yaml.parse(text, Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            line = event.start_mark.line + 1 if event.start_mark else None
            found, expected = f"more than {DEEPEST} levels", f"at most {DEEPEST} levels {_LIMITS}"
            raise InputError(
                "nested too deep", file=file, line=line, found=found, expected=expected
            )
