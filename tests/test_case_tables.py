"""Tables of like cases: every failing row is reported by its id, and a table cannot be empty."""

from pathlib import Path

import pytest
from tables import each

pytest_plugins = ["pytester"]

TABLE = """
import sys
sys.path.insert(0, {folder!r})
from tables import each

@each("left, right", [(1, 1), (1, 2), (3, 3), (3, 4)], ids=lambda value: f"v{{value}}")
def test_rows(left, right, tmp_path):
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    assert left == right
"""


def test_each_failing_row_is_reported_by_its_id(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TABLE.format(folder=str(Path(__file__).parent)))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:perfgate")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.str()
    assert "v1, v2" in text
    assert "v3, v4" in text
    assert "v1, v1" not in text
    assert "v3, v3" not in text


def test_a_table_has_rows_and_a_row_all_its_values() -> None:
    with pytest.raises(ValueError, match="without rows"):
        each("value", [])
    with pytest.raises(ValueError, match="a row of 1 values for 2 arguments"):
        each("left, right", [(1,)])
