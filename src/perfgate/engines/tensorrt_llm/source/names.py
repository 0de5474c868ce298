"""Names of a source tree: where a name is defined, and the plain value that it stands for.

What only running the code would tell is `Unread`, with its place; it is never guessed.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perfgate.core.errors import InputError
from perfgate.engines.tensorrt_llm.source.tree import SourceTree, dotted_name, module_file

_DEEPEST = 24  # names behind names
_MOST_STEPS = 2_000_000  # of looking things up: names can stand for each other without end


class Unread(Exception):
    """Something that only running the code would tell.

    Args:
        place: file and line.
        what: what it is, for people.
    """

    def __init__(self, place: str, what: str) -> None:
        self.place = place
        self.what = what
        super().__init__(f"{place}: {what}")


@dataclass(frozen=True)
class Found:
    """A definition, and the file that it is in."""

    file: str
    node: ast.AST

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{getattr(self.node, 'lineno', 1)}"


class Names:
    """Looks names up in the files of a tree."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        self._bound: dict[str, dict[str, ast.AST]] = {}
        self._steps = 0

    def spend(self) -> None:
        """Count one step.

        Raises:
            InputError: there were too many.
        """
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise InputError(
                "too intricate to be read: names stand for each other without end",
                file=self._tree.name,
            )

    def find(self, file: str, name: str, depth: int = _DEEPEST) -> Found | None:
        """The class, function or expression that `name` stands for at the top of `file`.

        None: it is not of this tree (an import from elsewhere, a builtin), or not defined.
        """
        self.spend()
        if depth <= 0:
            return None
        node = self._bindings(file).get(name)
        if isinstance(node, ast.ImportFrom):
            return self._imported(file, node, name, depth)
        if isinstance(node, ast.Name):
            return self.find(file, node.id, depth - 1)
        return None if node is None or isinstance(node, ast.Import) else Found(file, node)

    def _imported(self, file: str, node: ast.ImportFrom, name: str, depth: int) -> Found | None:
        original = next((one.name for one in node.names if (one.asname or one.name) == name), name)
        for target in self._targets(file, node):
            if self._tree.module(target) is not None:
                return self.find(target, original, depth - 1)
        return None

    def _targets(self, file: str, node: ast.ImportFrom) -> Sequence[str]:
        module = node.module or ""
        if node.level:
            package = dotted_name(file).split(".")
            package = package if file.endswith("__init__.py") else package[:-1]
            package = package[: len(package) - node.level + 1]
            module = ".".join([*package, *([module] if module else [])])
            return module_file(module)
        beside = file.rpartition("/")[0].replace("/", ".")  # of a script: its folder is searched
        return (*module_file(module), *module_file(f"{beside}.{module}" if beside else module))

    def _bindings(self, file: str) -> dict[str, ast.AST]:
        if file not in self._bound:
            module = self._tree.module(file)
            bound: dict[str, ast.AST] = {}
            if module is not None:
                for statement in statements(module.body):
                    bound.update(_bound_by(statement))
            self._bound[file] = bound
        return self._bound[file]

    def value(self, file: str, node: ast.AST | None, depth: int = _DEEPEST) -> Any:
        """The plain value of an expression; of an enumeration's member the member's own.

        Raises:
            Unread: only running the code would tell.
        """
        self.spend()
        unread = Unread(f"{file}:{getattr(node, 'lineno', 1)}", _text(node))
        if depth <= 0 or node is None:
            raise unread
        match node:
            case ast.Constant():
                return node.value
            case ast.List() | ast.Tuple() | ast.Set():
                return [self.value(file, one, depth - 1) for one in node.elts]
            case ast.UnaryOp(op=ast.USub()):
                return -self._number(file, node.operand, unread, depth)
            case ast.Name():
                found = self.find(file, node.id)
                if found is not None and isinstance(found.node, ast.expr):
                    return self.value(found.file, found.node, depth - 1)
                raise unread
        return self._of_parts(file, node, unread, depth)

    def _of_parts(self, file: str, node: ast.AST, unread: Unread, depth: int) -> Any:
        match node:
            case ast.Dict():
                return self._mapping(file, node, depth)
            case ast.BinOp():
                return self._computed(file, node, unread, depth)
            case ast.Attribute():
                return self._attribute(file, node, unread, depth)
            case ast.Call():
                return self._called(file, node, unread, depth)
        raise unread

    def _number(self, file: str, node: ast.AST, unread: Unread, depth: int) -> Any:
        value = self.value(file, node, depth - 1)
        if not isinstance(value, int | float) or abs(value) > 2**63:
            raise unread
        return value

    def _computed(self, file: str, node: ast.BinOp, unread: Unread, depth: int) -> Any:
        """A product of numbers, or a sum of numbers, texts or lists."""
        if isinstance(node.op, ast.Mult):
            left = self._number(file, node.left, unread, depth)
            return left * self._number(file, node.right, unread, depth)
        left = self.value(file, node.left, depth - 1)
        right = self.value(file, node.right, depth - 1)
        if (
            isinstance(node.op, ast.Add)
            and type(left) is type(right)
            and isinstance(left, str | int | float | list)
        ):
            return left + right
        raise unread

    def _mapping(self, file: str, node: ast.Dict, depth: int) -> dict[Any, Any]:
        """Keys with their values; a value that cannot be read is None: keys are what is asked."""
        found: dict[Any, Any] = {}
        for key, one in zip(node.keys, node.values, strict=True):
            try:
                value = self.value(file, one, depth - 1)
            except Unread:
                value = None
            name = self.value(file, key, depth - 1)
            found[name if isinstance(name, str | int | float) else str(name)] = value
        return found

    def _attribute(self, file: str, node: ast.Attribute, unread: Unread, depth: int) -> Any:
        """A member of an enumeration, or ``Member.value`` and ``Member.name``."""
        if node.attr in ("value", "name") and isinstance(node.value, ast.Attribute):
            return node.value.attr if node.attr == "name" else self.value(file, node.value, depth)
        if isinstance(node.value, ast.Name):
            found = self.find(file, node.value.id)
            if found is not None and isinstance(found.node, ast.ClassDef):
                for statement in statements(found.node.body):
                    member = _bound_by(statement).get(node.attr)
                    if isinstance(member, ast.expr):
                        return self._member(found.file, member, node.attr, depth)
        raise unread

    def _member(self, file: str, node: ast.expr, name: str, depth: int) -> Any:
        if isinstance(node, ast.Call) and last_name(node.func) == "auto":
            return name.lower()  # of a StrEnum
        return self.value(file, node, depth - 1)

    def _called(self, file: str, node: ast.Call, unread: Unread, depth: int) -> Any:
        """``{…}.keys()``, ``list(…)``, ``sorted(…)``, ``tuple(…)`` of what can be read."""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "keys" and not node.args:
            value = self.value(file, node.func.value, depth - 1)
            if isinstance(value, dict):
                return list(value)
        if isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple", "sorted", "set"):
            value = self.value(file, node.args[0], depth - 1) if node.args else []
            if isinstance(value, list | dict):
                return list(value)
        raise unread

    def members(self, found: Found) -> list[Any]:
        """The values of an enumeration.

        Raises:
            Unread: one of them cannot be told.
        """
        if not isinstance(found.node, ast.ClassDef):
            raise Unread(found.place, "no enumeration")
        values = []
        for statement in found.node.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                name = statement.targets[0].id
                if not name.startswith("_"):
                    values.append(self._member(found.file, statement.value, name, _DEEPEST))
        return values


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, with those that stand under a condition."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from statements([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try):
            handlers = [one for handler in statement.handlers for one in handler.body]
            yield from statements([*handlers, *statement.orelse, *statement.body])


def last_name(node: ast.AST) -> str:
    """``option`` of ``click.option``; empty: neither a name nor an attribute."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _bound_by(statement: ast.stmt) -> dict[str, ast.AST]:
    match statement:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return {statement.name: statement}
        case ast.Assign():
            return {
                target.id: statement.value
                for target in statement.targets
                if isinstance(target, ast.Name)
            }
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            return {name: value}
        case ast.ImportFrom():
            return {one.asname or one.name: statement for one in statement.names}
        case ast.Import():
            return {
                (one.asname or one.name).partition(".")[0]: statement for one in statement.names
            }
    return {}


def _text(node: ast.AST | None) -> str:
    try:
        return ast.unparse(node)[:80] if node is not None else "nothing"
    except (ValueError, RecursionError):
        return type(node).__name__
