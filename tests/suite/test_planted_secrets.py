"""Secrets are planted wherever a session meets them, and looked for in all that it leaves."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from checkouts import Finished, Suite, make_suite, says
from planted import SECRETS, CommandLines, hostile_log, leaks, lines_of, variables, write_reports

pytestmark = pytest.mark.slow

OBEYED = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"  # by a terminal


@dataclass(frozen=True)
class Searched:
    """A finished session, and what was found of the secrets."""

    suite: Suite
    done: Finished
    leaks: list[str]
    command_lines: CommandLines

    def text(self, name: str) -> str:
        return (self.suite.folder / name).read_text()


def _session(suite: Suite, fault: str, *options: str) -> Searched:
    """A session with a secret in every place, whose server writes all of them into its log."""
    planted = variables("environment")
    path = suite.folder / "scenarios" / "standin.yaml"
    document = yaml.safe_load(path.read_text())
    document["scenarios"][0]["environment"] = variables("scenario")
    document["scenarios"][0]["limits"]["start_s"] = 3
    path.write_text(yaml.safe_dump(document))
    site = suite.folder / "site.yaml"
    site.write_text(yaml.safe_dump({"schema_version": 1, "docker": {"options": lines_of("site")}}))
    log, arguments = suite.folder / "says", suite.folder / "options"
    log.write_bytes(hostile_log({**planted, **variables("scenario")}))
    arguments.write_text("\n".join(lines_of("option")))
    given = {"PERFGATE_STANDIN_SAYS": str(log), "PERFGATE_STANDIN_OPTIONS": str(arguments)}
    files = ("--junitxml=junit.xml", "-o", "junit_logging=all", "--benchmark-json=b.json")
    with CommandLines() as watch:
        done = suite.run("-k", "accuracy", *files, *options, fault=fault, **planted, **given)
    write_reports(suite.run_folder, suite.folder / "reports")
    found = leaks(suite.folder, done.output, frozenset({path, site, log, arguments}))
    return Searched(suite, done, found, watch)


@pytest.fixture(scope="module")
def died(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    return _session(make_suite(tmp_path_factory.mktemp("died")), "die-at-start", "-v")


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    return _session(make_suite(tmp_path_factory.mktemp("hung")), "never-ready", "-n", "1")


def test_a_server_that_dies_or_hangs_tells_no_secret(died: Searched, hung: Searched) -> None:
    assert len({one.kind for one in SECRETS}) >= 20
    for found in (died, hung):
        found.done.require(11)
        assert not found.leaks
        assert found.command_lines.looked_at
        assert not found.command_lines.found
    says(died.text("run/records.jsonl"), "server_died", "***")  # its last lines were shown
    dumps = [*hung.suite.folder.rglob("*.evidence.txt")]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in dumps)
    assert any("processes:" in path.read_text() for path in dumps)
    # The raw log keeps what the program wrote, for its owner alone.
    (log,) = died.suite.folder.rglob("server.err")
    assert log.stat().st_mode & 0o777 == 0o600
    assert (died.suite.folder / "says").read_bytes() in log.read_bytes()


def test_the_terminal_gets_nothing_that_it_obeys(died: Searched, hung: Searched) -> None:
    for found in (died, hung):
        files = [found.text(f"run/{name}") for name in ("records.jsonl", "summary.md")]
        for text in (found.done.output, found.text("junit.xml"), *files):
            assert not re.search(OBEYED, text)
    says(died.done.output, "\\x1b]0;owned\\x07")
    says(died.done.summary, "\\u202e")


def test_the_run_has_no_variable_that_nobody_listed(died: Searched) -> None:
    kept = json.loads(died.text("run/run.json"))["environment"]
    assert {"GITHUB_PAT", "CI_JOB_JWT", "SESSION_COOKIE", "HF_TOKEN"}.isdisjoint(kept)
    assert kept["HF_ENDPOINT"] == "https://***@hub.example/api"


def test_every_report_of_a_failure_shows_masked_lines(died: Searched, tmp_path: Path) -> None:
    reports = {one.name: one.read_text() for one in (died.suite.folder / "reports").iterdir()}
    says(reports["output.log"], "exit status 11")
    for name in ("report.json", "junit.xml"):
        says(reports[name].replace("\\\\", "\\"), "server_died", "***", "\\x1b]0;owned")
    for text in reports.values():
        assert not re.search(OBEYED, text)
    # A leak into one of them would be found.
    (secret, *_) = (one.secret for one in SECRETS if one.place == "log")
    (tmp_path / "report.md").write_text(f"{reports['report.md']}{secret}")
    assert leaks(tmp_path, "", frozenset())
