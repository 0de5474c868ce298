"""The site's commands on the road: what a SIGKILL of perfgate leaves undone, the guard does."""

import json
import signal
import sys

import pytest
from checkouts import ACCURACY, Suite, wait_for, wait_until

pytestmark = pytest.mark.slow

NOTE = "import sys; open(sys.argv[1], 'a').write(sys.argv[2])"


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["main", "worker"])
def test_after_runs_when_perfgate_is_killed(suite: Suite, workers: tuple[str, ...]) -> None:
    notes = suite.folder / "notes"
    note = [sys.executable, "-I", "-S", "-c", NOTE, str(notes)]
    calls = {"before": [[*note, "b"]], "after": [[*note, "a"], [*note, "A"]]}
    (suite.folder / "site.yaml").write_text(json.dumps({"schema_version": 1, **calls}))
    with suite.begun(ACCURACY, *workers, PERFGATE_STANDIN_FAULT="never-ready") as session:
        wait_for(suite.folder / "starts")
        assert notes.read_text() == "b"
        session.send_signal(signal.SIGKILL)
        session.wait(60)
    wait_until(lambda: notes.read_text() == "baA")
    assert suite.wait_until_empty() == []
    facts = json.loads((suite.folder / "run" / "run.json").read_text())
    assert facts["site_commands"].keys() == {"before", "after"}
