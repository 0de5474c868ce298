"""The note of a merge request, against a server that answers as GitLab's REST API does."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from perfgate.cli.gitlab_note import MARK, MergeRequest, body_of
from perfgate.cli.main import main

TOKEN = "glpat-0123456789abcdefghij"  # pragma: allowlist secret
NOTES = "/api/v4/projects/7/merge_requests/12/notes"


@dataclass
class GitLab:
    """The server.

    Attributes:
        notes: newest first, as the API gives them.
        asked: method, path, token of each request.
        status: that every writing request is refused with; 0: none is.
    """

    notes: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    status: int = 0
    redirect: str = ""
    address: str = ""


@pytest.fixture
def gitlab(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitLab]:
    state = GitLab()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def answer(self) -> None:
            path, _, query = self.path.partition("?")
            state.asked.append((self.command, path, self.headers["PRIVATE-TOKEN"]))
            size = int(self.headers.get("Content-Length") or 0)
            content = json.loads(self.rfile.read(size)) if size else {}
            if state.redirect:
                self.send_response(302)
                self.send_header("Location", state.redirect)
                self.end_headers()
                return None
            if path == "/api/v4/user":
                return self.say({"id": 5})
            if self.command == "GET":
                page = int(query.partition("&page=")[2].partition("&")[0])
                return self.say(state.notes[(page - 1) * 100 : page * 100])
            if state.status:
                self.send_error(state.status)
                return None
            if self.command == "POST":
                note = {"id": 900, "author": {"id": 5}, "body": content["body"]}
                state.notes.insert(0, note)
            else:
                (note,) = (one for one in state.notes if f"{NOTES}/{one['id']}" == path)
                note["body"] = content["body"]
            return self.say(note)

        def say(self, value: object) -> None:
            text = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    for method in ("GET", "POST", "PUT"):
        setattr(Handler, f"do_{method}", Handler.answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("CI_API_V4_URL", f"{state.address}/api/v4")
    monkeypatch.setenv("CI_MERGE_REQUEST_IID", "12")
    monkeypatch.setenv("CI_MERGE_REQUEST_PROJECT_ID", "7")
    monkeypatch.setenv("CI_JOB_URL", "https://gitlab.example.org/gate/-/jobs/4")
    monkeypatch.setenv("PERFGATE_GITLAB_TOKEN", TOKEN)
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture
def report(tmp_path: Path) -> Path:
    file = tmp_path / "report.md"
    file.write_text("# REGRESSION\n")
    return file


def test_one_note_is_written_and_then_updated(
    gitlab: GitLab, report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gitlab", "note", str(report), "--status", "1"]) == 0
    report.write_text("# PASS\n")
    assert main(["gitlab", "note", str(report), "--status", "0"]) == 0
    (note,) = gitlab.notes
    assert note["body"].startswith(f"{MARK}\n# PASS")
    assert "jobs/4/artifacts/file/perfgate-report/report.html" in note["body"]
    said = capsys.readouterr()
    assert said.out == "note written\nnote updated\n"
    assert {token for _, _, token in gitlab.asked} == {TOKEN}


def test_a_note_on_the_second_page_is_found_and_another_persons_is_left(
    gitlab: GitLab, report: Path
) -> None:
    planted = {"id": 1, "author": {"id": 6}, "body": f"{MARK}\nnot ours"}
    others = [{"id": 2 + n, "author": {"id": 5}, "body": "a word"} for n in range(120)]
    ours = {"id": 500, "author": {"id": 5}, "body": f"{MARK}\nold"}
    gitlab.notes = [planted, *others, ours]
    assert main(["gitlab", "note", str(report), "--status", "1"]) == 0
    assert "REGRESSION" in ours["body"]
    assert planted["body"].endswith("not ours")
    assert len(gitlab.notes) == 122


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("PERFGATE_GITLAB_TOKEN", "", "PERFGATE_GITLAB_TOKEN is not set"),
        ("CI_MERGE_REQUEST_IID", "", "of no merge request"),
        ("CI_MERGE_REQUEST_IID", "12/../../x", "no number"),
        ("CI_API_V4_URL", "http://gitlab.example.org/api/v4", "not https"),
    ],
)
def test_without_what_it_needs_nothing_is_asked(
    name: str,
    value: str,
    why: str,
    gitlab: GitLab,
    report: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(name, value)
    assert main(["gitlab", "note", str(report), "--status", "1"]) == 0
    assert why in capsys.readouterr().out
    assert gitlab.asked == []


def test_a_refusal_is_told_without_the_token(
    gitlab: GitLab, report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gitlab.status = 403
    assert main(["gitlab", "note", str(report), "--status", "1"]) == 1
    said = capsys.readouterr()
    assert "status 403" in said.err
    assert TOKEN not in said.out + said.err
    assert TOKEN not in repr(MergeRequest("a", "b", "c", TOKEN))


def test_the_token_follows_no_redirect(gitlab: GitLab, report: Path) -> None:
    gitlab.redirect = f"{gitlab.address}/elsewhere"
    assert main(["gitlab", "note", str(report), "--status", "1"]) == 1
    assert [path for _, path, _ in gitlab.asked] == ["/api/v4/user"]


def test_no_report_is_told_as_such(gitlab: GitLab, tmp_path: Path) -> None:
    assert main(["gitlab", "note", str(tmp_path / "none.md"), "--status", "2"]) == 0
    assert "no report" in gitlab.notes[0]["body"]
    assert "status 2" in gitlab.notes[0]["body"]


def test_no_line_of_a_report_is_a_command_to_gitlab() -> None:
    text = "/merge\n   /close\ntext @all and ada@example.org `x`\n/label ~a\n"
    body = body_of(text, 1, {"CI_JOB_URL": "javascript:alert(1)"})
    assert not any(line.lstrip().startswith("/") for line in body.splitlines())
    assert "@all" not in body
    assert "ada@example.org" in body
    assert "javascript" not in body


def test_a_long_report_is_cut_to_what_gitlab_takes() -> None:
    body = body_of("x" * 2_000_000, 1, {})
    assert len(body) < 1_000_000
    assert "cut" in body
