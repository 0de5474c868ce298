"""A run that somebody else left: read whole, or refused."""

import json
from pathlib import Path

import pytest
from made_runs import run, write_run
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.verdict import Verdict
from perfgate.runs.ended_run import read_run


@each(
    "change", [{"id": "one\n::error::planted"}, {"id": "one\x1b[2J"}, {"id": 1}, {"started": None}]
)
def test_a_run_whose_facts_are_not_what_perfgate_writes_is_refused(
    tmp_path: Path, change: dict[str, object]
) -> None:
    folder = write_run(tmp_path / "one", run("one", "09:00", {"a-c1": Verdict.PASS}))
    facts = json.loads((folder / "run.json").read_text())
    assert read_run(folder).id == "one"
    (folder / "run.json").write_text(json.dumps(facts | change))
    with pytest.raises(InputError, match=r"run\.json is not whole") as refused:
        read_run(folder)
    assert "\n::" not in str(refused.value)
