"""Every refusal that the code names is in the table, with all that its texts have in braces."""

import ast
from pathlib import Path
from string import Formatter

from perfgate.release import release_status

TABLE = release_status._REFUSALS
MAKERS = {"_broken", "_not_reproduced", "_other", "ReleaseStatus", "refusal"}


def refusals() -> dict[str, set[str]]:
    """Name → what each call that makes this refusal gives."""
    found: dict[str, set[str]] = {}
    for path in Path(release_status.__file__).parent.glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            match call:
                case ast.Call(func=ast.Name(id=maker) | ast.Attribute(attr=maker)) if (
                    maker in MAKERS
                ):
                    given = {one.arg or "*" for one in call.keywords} | {"file"}
                    if isinstance(name := getattr(call.args[0], "value", None), str):
                        found[name] = found.get(name, given) & given
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
    assert {name for _, name in entries} == named.keys()
    for (status, name), texts in entries.items():
        wanted = {
            part
            for text in texts.values()
            if isinstance(text, str)
            for _, part, _, _ in Formatter().parse(text)
            if part
        }
        assert wanted <= named[name], (status, name)
