"""Every refusal that the code names is in the table, with all that its texts have in braces."""

import ast
from pathlib import Path
from string import Formatter

from perfgate.release import release_status

TABLE = release_status._REFUSALS
HELPERS = {
    "_broken": "BROKEN_PACK",
    "_not_reproduced": "NOT_REPRODUCED",
    "_other": "OTHER_RELEASE",
    "ReleaseStatus": "",
}


def refusals() -> dict[tuple[str, str], set[str]]:
    """Status and name → what the call gives; of a call whose status is an argument, no status."""
    found: dict[tuple[str, str], set[str]] = {}
    for path in Path(release_status.__file__).parent.glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            match call:
                case ast.Call(func=ast.Name(id=name)) if name in HELPERS:
                    status = HELPERS[name]
                case ast.Call(func=ast.Attribute(attr="refusal", value=ast.Attribute(attr=status))):
                    pass
                case ast.Call(func=ast.Attribute(attr="refusal", value=ast.Name())):
                    status = ""
                case _:
                    continue
            match call.args[0]:
                case ast.Constant(value=str(name)):
                    found[status, name] = {one.arg or "*" for one in call.keywords} | {"file"}
    return found


def test_the_table_has_what_the_code_names_and_nothing_else() -> None:
    named = refusals()
    assert len(named) > 30
    entries = {
        (status, name): {**table, **texts}
        for status, table in TABLE.items()
        for name, texts in table.items()
        if isinstance(texts, dict)
    }
    assert {name for _, name in entries} == {name for _, name in named}
    for (status, name), texts in entries.items():
        given = named.get((status, name)) or named["", name]
        wanted = {
            part
            for text in texts.values()
            if isinstance(text, str)
            for _, part, _, _ in Formatter().parse(text)
            if part
        }
        assert wanted <= given, (status, name)
