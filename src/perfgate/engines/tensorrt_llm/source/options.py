"""Options as sources declare them: click's decorators, argparse's `add_argument`."""

import ast
from collections.abc import Iterator, Mapping, Sequence

from msgspec import UNSET

from perfgate.engines.definitions import Kind, OptionDefinition
from perfgate.engines.tensorrt_llm.source.names import Found, Names, Unread, last_name, statements

_OPTION, _ARGUMENT = "option", "argument"
_NO_OPTION = frozenset(  # decorators that declare none
    {
        "command",
        "group",
        "pass_context",
        "pass_obj",
        "version_option",
        "help_option",
        "staticmethod",
        "wraps",
    }
)
_KINDS: Mapping[str, Kind] = {
    "int": "integer",
    "INT": "integer",
    "IntRange": "integer",
    "float": "number",
    "FLOAT": "number",
    "FloatRange": "number",
    "bool": "boolean",
    "BOOL": "boolean",
}
_SUFFIXES = ("_command", "_cmd", "_group", "_grp")  # of a function, which click takes away
Options = dict[str, OptionDefinition]


class OptionReader:
    """Reads the options of functions and scripts; what cannot be read is noted with its place.

    Attributes:
        notes: what was not read.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self.notes: list[Unread] = []

    # click. -------------------------------------------------------------------------------

    def of_command(self, found: Found) -> Options:
        """The options that the decorators of a function declare, by name."""
        options: Options = {}
        if isinstance(found.node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in found.node.decorator_list:
                for call in self._declarations(found.file, decorator):
                    self._add(options, call)
        return options

    def _declarations(self, file: str, node: ast.AST) -> Iterator[Found]:
        """The calls that declare options, in a decorator or in what it names."""
        if _declares(node):
            yield Found(file, node)
            return
        if last_name(node.func if isinstance(node, ast.Call) else node) in _NO_OPTION:
            return
        declared = list(self._reused(file, node))
        if not declared:
            self.notes.append(Unread(f"{file}:{getattr(node, 'lineno', 1)}", "a decorator"))
        yield from declared

    def _reused(self, file: str, node: ast.AST) -> Iterator[Found]:
        """Declarations in a list that is given to a decorator, or in the decorator's own body."""
        parts = [node.func, *node.args] if isinstance(node, ast.Call) else [node]
        for part in parts:
            where, there = file, part
            if isinstance(part, ast.Name):
                found = self._names.find(file, part.id)
                if found is None:
                    continue
                where, there = found.file, found.node
            for inner in ast.walk(there):
                if _declares(inner):
                    yield Found(where, inner)

    def _add(self, options: Options, declared: Found) -> None:
        try:
            option = self._click(declared)
        except Unread as unread:
            self.notes.append(unread)
            return
        options[_name_of(option)] = option

    def _click(self, declared: Found) -> OptionDefinition:
        call = _call(declared)
        words = [self._word(declared.file, one) for one in call.args]
        given = self._keywords(declared, call)
        kind, choices = self._kind(declared, given)
        if last_name(call.func) == _ARGUMENT:
            required = self._constant(declared, given, "required", default=True)
            return OptionDefinition(
                options=(words[0],),
                kind="argument",
                choices=choices,
                required=required is True and "default" not in given,
                many=self._constant(declared, given, "nargs", default=1) != 1,
                place=declared.place,
            )
        on = [word.partition("/")[0].strip() for word in words if word.startswith("-")]
        off = [word.partition("/")[2].strip() for word in words if "/" in word]
        default = self._default(declared, given)
        is_flag = self._constant(declared, given, "is_flag", default=None)
        if is_flag is None:
            is_flag = bool(off) or ("flag_value" in given)
        if "type" not in given and kind == "text":
            kind = _kind_of(default)
        return OptionDefinition(
            options=tuple(on),
            kind="flag" if is_flag or "count" in given else kind,
            off=tuple(word for word in off if word),
            choices=choices,
            default=default,
            required=self._constant(declared, given, "required", default=False) is True,
            many=self._constant(declared, given, "nargs", default=1) != 1,
            repeated=self._constant(declared, given, "multiple", default=False) is True,
            place=declared.place,
        )

    # argparse. ----------------------------------------------------------------------------

    def of_script(self, file: str, body: Sequence[ast.stmt]) -> Options:
        """The options of all parsers of a script; those of subcommands are left out."""
        options: Options = {}
        below: set[str] = set()
        for node in (inner for statement in body for inner in ast.walk(statement)):
            if isinstance(node, ast.Assign) and last_name(_callee(node.value)) == "add_parser":
                below.update(one.id for one in node.targets if isinstance(one, ast.Name))
        for node in (inner for statement in body for inner in ast.walk(statement)):
            if not isinstance(node, ast.Call):
                continue
            if last_name(node.func) == "add_argument" and isinstance(node.func, ast.Attribute):
                if last_name(node.func.value) not in below:
                    self._add_argument(options, Found(file, node))
            elif isinstance(node.func, ast.Name):
                self._borrowed(options, file, node.func.id)
        return options

    def _borrowed(self, options: Options, file: str, name: str) -> None:
        """The options that a function of another file adds to the parser that it is given."""
        found = self._names.find(file, name)
        if found is None or found.file == file or not isinstance(found.node, ast.FunctionDef):
            return
        for inner in ast.walk(found.node):
            if isinstance(inner, ast.Call) and last_name(inner.func) == "add_argument":
                self._add_argument(options, Found(found.file, inner))

    def _add_argument(self, options: Options, declared: Found) -> None:
        try:
            option = self._argparse(declared)
        except Unread as unread:
            self.notes.append(unread)
            return
        options[_name_of(option)] = option

    def _argparse(self, declared: Found) -> OptionDefinition:
        call = _call(declared)
        words = tuple(self._word(declared.file, one) for one in call.args)
        given = self._keywords(declared, call)
        kind, choices = self._kind(declared, given)
        action = self._action(given)
        count = self._constant(declared, given, "nargs", default=None)
        is_switch = action in ("store_true", "store_false", "store_const", "count", "help")
        is_both = action == "BooleanOptionalAction"
        is_option = words[0].startswith("-")
        return OptionDefinition(
            options=words,
            kind="argument" if not is_option else "flag" if is_switch or is_both else kind,
            off=tuple(f"--no-{word[2:]}" for word in words) if is_both else (),
            choices=choices,
            default=self._default(declared, given),
            required=self._constant(declared, given, "required", default=not is_option) is True
            and count not in ("?", "*"),
            many=count in ("+", "*") or (isinstance(count, int) and count > 1),
            repeated=action in ("append", "extend"),
            place=declared.place,
        )

    def _action(self, given: Mapping[str, ast.expr]) -> str:
        action = given.get("action")
        if isinstance(action, ast.Constant):
            return str(action.value)
        return "" if action is None else last_name(action)

    # Both. --------------------------------------------------------------------------------

    def _word(self, file: str, node: ast.AST) -> str:
        value = self._names.value(file, node)
        if not isinstance(value, str) or not value:
            raise Unread(f"{file}:{getattr(node, 'lineno', 1)}", "a name that is no text")
        return value

    def _keywords(self, declared: Found, call: ast.Call) -> dict[str, ast.expr]:
        given = {one.arg: one.value for one in call.keywords if one.arg is not None}
        if len(given) < len(call.keywords):
            self.notes.append(Unread(declared.place, "settings given by **"))
        return given

    def _kind(self, declared: Found, given: Mapping[str, ast.expr]) -> tuple[Kind, tuple[str, ...]]:
        """What the option takes, and its choices where they can be read."""
        told = given.get("type")
        if "choices" in given:
            kind = _KINDS.get(last_name(told), "text") if told is not None else "text"
            return kind, self._choices(declared, given["choices"], None)
        if not isinstance(told, ast.Call):
            return (_KINDS.get(last_name(told), "text") if told is not None else "text"), ()
        name = last_name(told.func)
        if "Choice" not in name:
            return _KINDS.get(name, "text"), ()
        blind = any(
            one.arg == "case_sensitive"
            and not (isinstance(one.value, ast.Constant) and one.value.value is True)
            for one in told.keywords
        )
        first = told.args[0] if told.args else _keyword(told, "choices")
        aliases = told.args[1] if len(told.args) > 1 else _keyword(told, "aliases")
        return "text", () if blind else self._choices(declared, first, aliases)

    def _choices(
        self, declared: Found, node: ast.AST | None, aliases: ast.AST | None
    ) -> tuple[str, ...]:
        try:
            told = self._names.value(declared.file, node)
            also = self._names.value(declared.file, aliases) if aliases is not None else []
        except Unread as unread:
            self.notes.append(Unread(unread.place, f"choices: {unread.what}"))
            return ()
        return tuple(str(one) for one in (*told, *also))

    def _default(self, declared: Found, given: Mapping[str, ast.expr]) -> object:
        if "default" not in given:
            return UNSET
        try:
            return self._names.value(declared.file, given["default"])
        except Unread:
            return UNSET  # a default that is not told is not compared with anything

    def _constant(
        self, declared: Found, given: Mapping[str, ast.expr], name: str, *, default: object
    ) -> object:
        if name not in given:
            return default
        try:
            return self._names.value(declared.file, given[name])
        except Unread as unread:
            self.notes.append(Unread(unread.place, f"{name}: {unread.what}"))
            return default


def command_name(found: Found) -> str:
    """The name of a click command: as its decorator says, else made of the function's."""
    if not isinstance(found.node, ast.FunctionDef):
        return ""
    for decorator in found.node.decorator_list:
        if isinstance(decorator, ast.Call) and last_name(decorator.func) in ("command", "group"):
            first = decorator.args[0] if decorator.args else _keyword(decorator, "name")
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                return first.value
    name = found.node.name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name.lower().replace("_", "-")


def subcommands(names: Names, file: str, body: Sequence[ast.stmt], group: str) -> dict[str, Found]:
    """The commands of the click group `group` of a file, by name."""
    found: dict[str, Found] = {}
    for statement in statements(body):
        if isinstance(statement, ast.FunctionDef) and any(
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr in ("command", "group")
            and last_name(one.func.value) == group
            for one in statement.decorator_list
        ):
            there = Found(file, statement)
            found[command_name(there)] = there
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            is_added = last_name(call.func) == "add_command" and isinstance(
                call.func, ast.Attribute
            )
            if is_added and last_name(call.func.value) == group and call.args:  # type: ignore[attr-defined]
                target = _target(names, file, call.args[0])
                if target is not None:
                    named = _keyword(call, "name") or (call.args[1] if call.args[1:] else None)
                    found[_constant_text(named) or command_name(target)] = target
    made = names.find(file, group)
    if made is not None and isinstance(made.node, ast.Call):
        commands = _keyword(made.node, "commands")
        if isinstance(commands, ast.Dict):
            for key, one in zip(commands.keys, commands.values, strict=True):
                target = _target(names, made.file, one)
                if target is not None and _constant_text(key):
                    found[_constant_text(key)] = target
    return found


def _target(names: Names, file: str, node: ast.expr) -> Found | None:
    """The command that a name, or a method of a class, is."""
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return names.find(file, last_name(node))
    owner = names.find(file, node.value.id)
    if owner is None or not isinstance(owner.node, ast.ClassDef):
        return None
    methods = (one for one in owner.node.body if isinstance(one, ast.FunctionDef))
    method = next((one for one in methods if one.name == node.attr), None)
    return None if method is None else Found(owner.file, method)


def _declares(node: ast.AST) -> bool:
    """``click.option(…)`` and its like, never a bare ``option(…)``."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_call and last_name(_callee(node)) in (_OPTION, _ARGUMENT)


def _callee(node: ast.AST) -> ast.AST:
    return node.func if isinstance(node, ast.Call) else node


def _constant_text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _call(declared: Found) -> ast.Call:
    if not isinstance(declared.node, ast.Call):
        raise Unread(declared.place, "no call")
    if not declared.node.args:
        raise Unread(declared.place, "a declaration without a name")
    return declared.node


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def _name_of(option: OptionDefinition) -> str:
    return max(option.options or ("",), key=len).lstrip("-").replace("-", "_")


def _kind_of(default: object) -> Kind:
    """What click takes where only a default tells it."""
    if isinstance(default, bool):
        return "boolean"
    if isinstance(default, int):
        return "integer"
    return "number" if isinstance(default, float) else "text"
