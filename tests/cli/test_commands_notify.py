"""`perfgate notify`, against a real server: what is told, once, whatever happens meanwhile."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from building import outcome
from sessions import inherited
from webhook_server import TOKEN, WebhookServer, answer

from perfgate.cli.main import main
from perfgate.core import redaction
from perfgate.gate.verdict import Verdict
from perfgate.runs.records import RunFolder

pytestmark = pytest.mark.timeout(120)

MONDAY, TUESDAY = "2026-11-23T02:00:00+00:00", "2026-11-24T02:00:00+00:00"


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_given", set())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebhookServer]:
    made = WebhookServer()
    monkeypatch.setenv("PERFGATE_WEBHOOK", made.url)
    yield made
    made.close()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "told.json"


def run(folder: Path, verdict: Verdict | None, started: str = MONDAY, **changes: Any) -> str:
    """A run with one test; None: it was killed before that test had a verdict."""
    facts = {"started": started, "arguments": [], "machine": {}, "git": {}, "versions": {}}
    made = RunFolder.create(folder, facts)
    made.record("selected", {"tests": ["t[small-serve-c4]"]})
    if verdict is not None:
        if verdict != Verdict.REGRESSION:
            changes = {"judgements": (), "reason": "as it is", **changes}
        one = outcome(verdict=verdict, **changes)
        made.record("verdict", {"test": "t[small-serve-c4]", **one.as_record()})
        known = {Verdict.REGRESSION: 1, Verdict.PASS: 0}[verdict]
        end = {"gate": False, "record_only": False, "failed": [], "bugs": [], "unwritten": False}
        made.record("ended", {"status": 13 if one.synthetic else known, **end})
    made.close()
    return str(folder)


def texts(server: WebhookServer) -> list[str]:
    assert all(list(body) == ["text"] for _, body in server.got)
    return [body["text"] for _, body in server.got]


def notify(*words: str, state: Path) -> int:
    return main(["notify", *words, "--state", str(state)])


def series(state: Path) -> dict[str, str]:
    plain = json.loads(state.read_text())
    assert plain["sending"] is None
    return {name: one["state"] for name, one in plain["series"].items()}


def test_a_change_is_told_once(
    tmp_path: Path, server: WebhookServer, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    red = run(tmp_path / "monday", Verdict.REGRESSION)
    assert notify(red, "--title", "nightly", state=state) == 0
    assert notify(red, state=state) == 0
    assert notify(run(tmp_path / "noon", Verdict.REGRESSION, TUESDAY), state=state) == 0
    assert capsys.readouterr().out.splitlines() == [
        "told: 1 scenario newly red",
        "nothing changed, so nothing is told",
        "nothing changed, so nothing is told",
    ]
    (text,) = texts(server)
    assert text.startswith("*nightly: 1 scenario newly red*\nexit status 1: ")
    assert "build: llama.cpp 1.3.0, commit def456\n" in text
    assert "• newly red (new): `small-serve`: c4: output_throughput -12.3 %" in text
    assert (
        notify(run(tmp_path / "night", Verdict.PASS, "2026-11-25T02:00:00+00:00"), state=state) == 0
    )
    assert len(server.got) == 2
    assert "newly green (was red)" in texts(server)[1]
    assert series(state) == {"small-serve-c4": "green", "(run)": "green"}


def test_green_at_first_is_not_told(tmp_path: Path, server: WebhookServer, state: Path) -> None:
    assert notify(run(tmp_path / "a", Verdict.PASS), state=state) == 0
    assert server.got == []
    assert series(state) == {"small-serve-c4": "green", "(run)": "green"}


def test_without_an_address_nothing_is_told_and_nothing_written(
    tmp_path: Path,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("PERFGATE_WEBHOOK", raising=False)
    assert notify(run(tmp_path / "a", Verdict.REGRESSION), state=state) == 0
    assert capsys.readouterr().out == "PERFGATE_WEBHOOK is not set, so nothing is told\n"
    assert not state.parent.exists()


def test_a_killed_run_is_told_as_such(tmp_path: Path, server: WebhookServer, state: Path) -> None:
    assert notify(run(tmp_path / "a", None), state=state) == 0
    (text,) = texts(server)
    assert "1 scenario newly failed (no verdict)" in text
    assert "• newly failed (no verdict) (new): the run: run a " in text
    assert text.count("1 of 1 without a result") == 1


def test_a_rehearsal_is_told_only_if_asked_for_and_stamped(
    tmp_path: Path, server: WebhookServer, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played = run(tmp_path / "a", Verdict.REGRESSION, synthetic=True)
    assert notify(played, state=state) == 0
    assert "a rehearsal: stand-ins made its numbers" in capsys.readouterr().out
    assert (server.got, state.exists()) == ([], False)
    assert notify(played, "--synthetic", state=state) == 0
    (text,) = texts(server)
    assert text.startswith("*SYNTHETIC: ")
    # A real run of the same test is another series.
    assert notify(run(tmp_path / "b", Verdict.REGRESSION, TUESDAY), state=state) == 0
    assert len(server.got) == 2


@pytest.mark.parametrize("status", [400, 404, 500, 302])
def test_what_was_refused_is_tried_again_by_the_next_call(
    tmp_path: Path,
    server: WebhookServer,
    state: Path,
    capsys: pytest.CaptureFixture[str],
    status: int,
) -> None:
    server.act = answer(status, f"invalid_token {TOKEN}", Location="http://127.0.0.1:1/")
    red = run(tmp_path / "a", Verdict.REGRESSION)
    assert notify(red, state=state) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(
        "perfgate: warning: not told: 1 scenario newly red: it answered with"
    )
    assert TOKEN not in told.err
    assert server.url not in told.err
    assert series(state) == {"(run)": "green"}
    server.act = answer(200)
    assert notify(red, state=state) == 0
    assert notify(red, state=state) == 0
    assert len(server.got) == 2


def test_nobody_there_likewise(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PERFGATE_WEBHOOK", "http://127.0.0.1:1/services/secret")
    assert notify(run(tmp_path / "a", Verdict.REGRESSION), state=state) == 0
    told = capsys.readouterr().err
    assert "refused; the next call tries again what then still holds" in told
    assert "secret" not in told
    assert "small-serve-c4" not in series(state)


def test_a_change_that_is_over_before_it_could_be_told_is_no_news(
    tmp_path: Path, server: WebhookServer, state: Path
) -> None:
    assert notify(run(tmp_path / "a", Verdict.PASS), state=state) == 0
    server.act = answer(500)
    assert notify(run(tmp_path / "b", Verdict.REGRESSION, TUESDAY), state=state) == 0
    assert series(state)["small-serve-c4"] == "green"
    server.act = answer(200)
    assert notify(run(tmp_path / "c", Verdict.PASS, "2026-11-25T02:00:00+00:00"), state=state) == 0
    assert len(server.got) == 1


def test_what_may_have_been_told_is_not_told_again(
    tmp_path: Path, server: WebhookServer, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.act = lambda handler: handler.connection.shutdown(2)
    red = run(tmp_path / "a", Verdict.REGRESSION)
    assert notify(red, state=state) == 0
    assert "warning: perhaps not told: 1 scenario newly red" in capsys.readouterr().err
    server.act = answer(200)
    assert notify(red, state=state) == 0
    assert len(server.got) == 1


def call(*words: str, before: str = "") -> subprocess.Popen[str]:
    program = f"import os, sys\nfrom perfgate.cli import notify\n{before}\n"
    program += "from perfgate.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", program, "notify", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=inherited(),
    )


def test_of_two_calls_at_once_one_tells(tmp_path: Path, server: WebhookServer, state: Path) -> None:
    def slow(handler: Any) -> None:
        time.sleep(0.5)
        answer(200)(handler)

    server.act = slow
    red = run(tmp_path / "a", Verdict.REGRESSION)
    # Each is slow between what it reads and what it writes.
    late = "read = notify.changes\nimport time\n"
    late += "notify.changes = lambda *given: (time.sleep(0.5), read(*given))[1]"
    calls = [call(red, "--state", str(state), before=late) for _ in range(2)]
    output = [one.communicate() for one in calls]
    said = sorted(out for out, _ in output)
    assert [err for _, err in output] == ["", ""]
    assert [one.returncode for one in calls] == [0, 0]
    assert said == ["nothing changed, so nothing is told\n", "told: 1 scenario newly red\n"]
    assert len(server.got) == 1


@pytest.mark.parametrize("posted", [True, False])
def test_a_call_that_is_killed_on_its_way_has_told(
    tmp_path: Path,
    server: WebhookServer,
    state: Path,
    capsys: pytest.CaptureFixture[str],
    posted: bool,
) -> None:
    red = run(tmp_path / "a", Verdict.REGRESSION)
    kill = "lambda *_: os.kill(os.getpid(), 9)"
    if posted:
        kill = "lambda *given: (post(*given), os.kill(os.getpid(), 9))"
    killed = call(red, "--state", str(state), before=f"post = notify.post\nnotify.post = {kill}")
    killed.communicate()
    assert killed.returncode == -9
    assert len(server.got) == posted
    assert json.loads(state.read_text())["sending"]["what"] == "1 scenario newly red"
    assert notify(red, state=state) == 0
    told = capsys.readouterr()
    assert told.err.startswith(
        "perfgate: warning: perhaps not told: 1 scenario newly red: the call"
    )
    assert told.out == "nothing changed, so nothing is told\n"
    assert len(server.got) == posted
    assert notify(red, state=state) == 0
    assert capsys.readouterr().err == ""


def test_a_state_that_cannot_be_written_tells_nothing(
    tmp_path: Path, server: WebhookServer, capsys: pytest.CaptureFixture[str]
) -> None:
    red = run(tmp_path / "a", Verdict.REGRESSION)
    assert notify(red, state=Path("/proc/told.json")) == 16
    assert server.got == []
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("no json", "is not JSON"),
        ("[]", "schema version"),
        ('{"schema_version": 2}', "schema version"),
        ('{"schema_version": 1, "series": {"a": {"state": "blue"}}}', "series"),
    ],
)
def test_an_unusable_state_is_refused(
    tmp_path: Path,
    server: WebhookServer,
    state: Path,
    capsys: pytest.CaptureFixture[str],
    content: str,
    said: str,
) -> None:
    state.parent.mkdir()
    state.write_text(content)
    assert notify(run(tmp_path / "a", Verdict.REGRESSION), state=state) == 2
    assert said in capsys.readouterr().err
    assert (server.got, state.read_text()) == ([], content)


@pytest.mark.parametrize("name", ["told.json", ".told.json.lock"])
@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_the_place_of_the_state_is_refused(
    tmp_path: Path, server: WebhookServer, state: Path, name: str, there: bool
) -> None:
    state.parent.mkdir()
    other = tmp_path / "other"
    if there:
        other.write_text("{}")
    (state.parent / name).symlink_to(other)
    assert notify(run(tmp_path / "a", Verdict.REGRESSION), state=state) == 2
    assert server.got == []
    assert other.exists() == there
    assert not there or other.read_text() == "{}"


def test_a_state_that_others_may_write_to_is_refused(
    tmp_path: Path, server: WebhookServer, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    red = run(tmp_path / "a", Verdict.REGRESSION)
    assert notify(red, state=state) == 0
    state.chmod(0o666)
    assert notify(red, state=state) == 2
    assert "everybody may write to it" in capsys.readouterr().err
    assert len(server.got) == 1


@pytest.mark.parametrize(
    "link",
    [
        "javascript:alert(1)",
        "ci.example/1",
        "https://",
        "https://ci.example/<!here>",
        "https://ci.example/a|b",
        "https://ci.example/a b",
        "https://ci.example/\n@channel",
        f"https://ci.example/{'x' * 400}",
        "https://[::1",
    ],
)
def test_a_link_that_is_none_is_wrong_usage(
    tmp_path: Path, server: WebhookServer, state: Path, link: str
) -> None:
    assert notify(run(tmp_path / "a", Verdict.REGRESSION), "--link", link, state=state) == 2
    assert server.got == []


def test_no_run_and_no_state_are_wrong_usage(
    tmp_path: Path, server: WebhookServer, state: Path
) -> None:
    assert notify(str(tmp_path), state=state) == 2
    with pytest.raises(SystemExit, match="2"):
        main(["notify", str(tmp_path)])
    assert (server.got, os.path.lexists(state)) == ([], False)


def test_as_json_it_says_what_became_of_the_message(
    tmp_path: Path, server: WebhookServer, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    red = run(tmp_path / "a", Verdict.REGRESSION)
    server.act = answer(500)
    fates = []
    for _ in range(3):
        assert notify(red, "--format", "json", state=state) == 0
        plain = json.loads(capsys.readouterr().out)
        fates.append((plain["fate"], [(one["name"], one["now"]) for one in plain["changes"]]))
        server.act = answer(200)
    change = ("small-serve-c4", "red")
    assert fates == [("not told", [change]), ("told", [change]), ("nothing to tell", [])]
    assert texts(server)[0] == texts(server)[1]
