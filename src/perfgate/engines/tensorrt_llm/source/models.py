"""The keys of the YAML file as sources declare them: pydantic models and dataclasses."""

import ast
from collections.abc import Iterator, Mapping

from msgspec import UNSET

from perfgate.engines.definitions import KeyDefinition, Keys
from perfgate.engines.tensorrt_llm.source.names import Found, Names, Unread, last_name, statements

_PLAIN: Mapping[str, str] = {
    "int": "int",
    "float": "float",
    "str": "str",
    "bool": "bool",
    "dict": "dict",
    "Dict": "dict",
    "Mapping": "dict",
    "list": "list",
    "List": "list",
    "Sequence": "list",
    "Tuple": "list",
    "tuple": "list",
    "Set": "list",
    "set": "list",
    "None": "null",
    "Path": "str",
    "StrictStr": "str",
    "StrictBool": "bool",
}
_NUMBERS = ("NonNegative", "Positive", "NonPositive", "Negative", "Strict")
_WITHOUT_FIELDS = frozenset({"BaseModel", "ABC", "object", "Generic", "Protocol", "PybindMirror"})
_ENUMS = frozenset({"Enum", "StrEnum", "IntEnum"})
_ANY = "any"
_DEEPEST = 10


class ModelReader:
    """Reads models; what cannot be read is noted with its place.

    Attributes:
        notes: what was not read.
        count: keys that were read, with those below others.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._read: dict[str, dict[str, KeyDefinition]] = {}
        self.notes: list[Unread] = []

    @property
    def count(self) -> int:
        """How many keys of how many models were read."""
        return sum(len(keys) for keys in self._read.values())

    def keys(self, found: Found, depth: int = _DEEPEST) -> dict[str, KeyDefinition]:
        """The keys that a model takes, those of its bases first."""
        name = f"{found.file}:{getattr(found.node, 'name', '')}"
        if name in self._read or depth <= 0:
            return self._read.get(name, {})
        keys: dict[str, KeyDefinition] = {}
        self._read[name] = keys  # a model can hold itself
        for base in self._bases(found):
            keys.update(self.keys(base, depth - 1))
        if isinstance(found.node, ast.ClassDef):
            for statement in statements(found.node.body):
                if isinstance(statement, ast.AnnAssign):
                    keys.update(self._key(found.file, statement, depth))
        return keys

    def refuses_unknown(self, found: Found, depth: int = _DEEPEST) -> bool:
        """Whether a key that the model lacks is an error; else it is dropped without a word."""
        node = found.node
        if not isinstance(node, ast.ClassDef) or depth <= 0:
            return False
        if any(last_name(_callee(one)) == "dataclass" for one in node.decorator_list):
            return True  # an unexpected keyword argument
        for statement in statements(node.body):
            told = _assigned(statement, "model_config")
            if told is not None:
                extra = self._setting(found.file, told, "extra")
                if extra is not None:
                    return extra == "forbid"
            if isinstance(statement, ast.ClassDef) and statement.name == "Config":
                for inner in statement.body:
                    extra_node = _assigned(inner, "extra")
                    if extra_node is not None:
                        return "forbid" in ast.unparse(extra_node)
        return any(self.refuses_unknown(base, depth - 1) for base in self._bases(found))

    def _setting(self, file: str, node: ast.expr, name: str) -> object:
        if isinstance(node, ast.Call):
            told = next((one.value for one in node.keywords if one.arg == name), None)
        elif isinstance(node, ast.Dict):
            told = next(
                (
                    value
                    for key, value in zip(node.keys, node.values, strict=True)
                    if isinstance(key, ast.Constant) and key.value == name
                ),
                None,
            )
        else:
            told = None
        try:
            return None if told is None else self._names.value(file, told)
        except Unread as unread:
            self.notes.append(unread)
            return None

    def _bases(self, found: Found) -> Iterator[Found]:
        """The bases that have keys, in the order in which later ones are overridden."""
        if not isinstance(found.node, ast.ClassDef):
            return
        for base in reversed(found.node.bases):
            name = last_name(base.value if isinstance(base, ast.Subscript) else base)
            there = self._names.find(found.file, name)
            if there is not None and isinstance(there.node, ast.ClassDef):
                yield there
            elif name not in _WITHOUT_FIELDS | _ENUMS:
                place = f"{found.file}:{base.lineno}"
                self.notes.append(Unread(place, f"a base class of {found.node.name}: {name}"))

    def _key(self, file: str, node: ast.AnnAssign, depth: int) -> dict[str, KeyDefinition]:
        if not isinstance(node.target, ast.Name):
            return {}
        name = node.target.id
        place = f"{file}:{node.lineno}"
        if _is_class_variable(node.annotation):
            value = node.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                return {name: KeyDefinition(choices=(value.value,), place=place)}
            return {}
        settings = _field(node.value)
        if settings is None and last_name(_callee(node.value or node.target)) == "PrivateAttr":
            return {}
        spellings = self._spellings(file, settings or {}) or ([] if name[0] == "_" else [name])
        if not spellings:
            return {}
        key = _Annotation(self, self._names, file, depth).read(node.annotation)
        default = settings.get("default") if settings is not None else node.value
        read = KeyDefinition(
            types=tuple(dict.fromkeys(key.types)),
            choices=tuple(dict.fromkeys(key.choices)),
            default=self._default(file, default, (settings or {}).get("default_factory")),
            models=key.models,
            unknown=("refused" if all(key.closed) else "ignored") if key.closed else UNSET,
            place=place,
        )
        return dict.fromkeys(dict.fromkeys([*spellings, name]), read)

    def _spellings(self, file: str, settings: Mapping[str, ast.expr]) -> list[str]:
        found: list[str] = []
        for name in ("alias", "validation_alias"):
            told = settings.get(name)
            if told is None:
                continue
            nodes = told.args if isinstance(told, ast.Call) else [told]
            for node in nodes:
                try:
                    found.append(str(self._names.value(file, node)))
                except Unread as unread:
                    self.notes.append(unread)
        return found

    def _default(self, file: str, node: ast.expr | None, factory: ast.expr | None) -> object:
        if factory is not None:
            return [] if last_name(factory) == "list" else {}
        if node is None:
            return UNSET
        try:
            return self._names.value(file, node)
        except Unread:
            return UNSET  # a default that is not told is not compared with anything


class _Annotation:
    """What an annotation says that a key takes."""

    def __init__(self, reader: ModelReader, names: Names, file: str, depth: int) -> None:
        self._reader, self._names, self._file, self._depth = reader, names, file, depth
        self.types: list[str] = []
        self.choices: list[str] = []
        self.models: dict[str, Keys] = {}
        self.closed: list[bool] = []

    def read(self, node: ast.AST) -> "_Annotation":
        self._names.spend()
        if self._depth <= 0:
            self.types.append(_ANY)
            return self
        match node:
            case ast.Constant(value=None):
                self.types.append("null")
            case ast.Constant(value=str() as text):
                self._quoted(text)
            case ast.BinOp(op=ast.BitOr()):
                self.read(node.left).read(node.right)
            case ast.Subscript():
                self._subscript(node)
            case ast.Name() | ast.Attribute():
                self._named(node)
            case _:
                self.types.append(_ANY)
        return self

    def _quoted(self, text: str) -> None:
        try:
            self.read(ast.parse(text, mode="eval").body)
        except (SyntaxError, ValueError, RecursionError):
            self.types.append(_ANY)

    def _subscript(self, node: ast.Subscript) -> None:
        name = last_name(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Optional":
            self.types.append("null")
            self.read(parts[0])
        elif name == "Union":
            for part in parts:
                self.read(part)
        elif name in ("Annotated", "Required", "NotRequired", "Final"):
            self.read(parts[0])
        elif name == "Literal":
            self._literal(parts)
        else:
            self.types.append(_PLAIN.get(name, _ANY))

    def _literal(self, parts: list[ast.expr]) -> None:
        for part in parts:
            try:
                value = self._names.value(self._file, part)
            except Unread as unread:
                self._reader.notes.append(unread)
                self.types.append(_ANY)
                continue
            if isinstance(value, str):
                self.choices.append(value)
            else:
                self.types.append("null" if value is None else type(value).__name__)

    def _named(self, node: ast.Name | ast.Attribute) -> None:
        name = last_name(node)
        found = self._names.find(self._file, name) if isinstance(node, ast.Name) else None
        if found is None:
            self.types.append(_plain(name))
        elif isinstance(found.node, ast.ClassDef):
            self._class(name, found)
        elif isinstance(found.node, ast.expr):
            _Annotation.read(self._elsewhere(found), found.node)
        else:
            self.types.append(_ANY)

    def _elsewhere(self, found: Found) -> "_Annotation":
        """The same annotation, whose names are those of another file from here on."""
        other = _Annotation(self._reader, self._names, found.file, self._depth - 1)
        other.types, other.choices = self.types, self.choices
        other.models, other.closed = self.models, self.closed
        return other

    def _class(self, name: str, found: Found) -> None:
        bases = {last_name(base) for base in found.node.bases}  # type: ignore[attr-defined]
        if bases & _ENUMS:
            try:
                members = self._names.members(found)
            except Unread as unread:
                self._reader.notes.append(unread)
                self.types.append(_ANY)
                return
            self.choices += [one for one in members if isinstance(one, str)]
            self.types += [type(one).__name__ for one in members if not isinstance(one, str)]
            return
        self.types.append(name)
        keys = self._reader.keys(found, self._depth - 1)
        if keys:
            self.models[name] = keys
            self.closed.append(self._reader.refuses_unknown(found))


def _plain(name: str) -> str:
    for prefix in _NUMBERS:
        name = name.removeprefix(prefix) if name.startswith(prefix) else name
    return _PLAIN.get(name) or {"Int": "int", "Float": "float"}.get(name, _ANY)


def _field(node: ast.expr | None) -> dict[str, ast.expr] | None:
    """The settings of a ``Field(…)``; None: the value is none."""
    if not isinstance(node, ast.Call) or last_name(node.func).lower() not in (
        "field",
        "pydanticfield",
    ):
        return None
    settings = {one.arg: one.value for one in node.keywords if one.arg is not None}
    if node.args:
        settings.setdefault("default", node.args[0])
    return settings


def _is_class_variable(annotation: ast.expr) -> bool:
    inner = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return last_name(inner) == "ClassVar"


def _callee(node: ast.expr) -> ast.AST:
    return node.func if isinstance(node, ast.Call) else node


def _assigned(statement: ast.stmt, name: str) -> ast.expr | None:
    if isinstance(statement, ast.Assign):
        targets: list[ast.expr] = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        return None
    is_it = any(isinstance(one, ast.Name) and one.id == name for one in targets)
    return statement.value if is_it else None
