"""Secrets are planted wherever a session meets them, and looked for in all that it leaves."""

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import forked
import pytest
import yaml
from planted import SECRETS, CommandLines, hostile_log, leaks, lines_of, variables, write_reports
from sessions import ONLY_NEEDED_PLUGINS, TRACES, inherited
from test_road import PLUGINS, ROOT, Suite, make_suite

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Searched:
    """A finished session, and what was found of the secrets."""

    suite: Suite
    status: int
    output: str
    leaks: list[str]
    command_lines: CommandLines

    @property
    def records(self) -> str:
        return (self.suite.folder / "run" / "records.jsonl").read_text()


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
    says, arguments = suite.folder / "says", suite.folder / "options"
    says.write_bytes(hostile_log({**planted, **variables("scenario")}))
    arguments.write_text("\n".join(lines_of("option")))
    environment = {
        **suite.environment,
        **planted,
        "PERFGATE_STANDIN_FAULT": fault,
        "PERFGATE_STANDIN_SAYS": str(says),
        "PERFGATE_STANDIN_OPTIONS": str(arguments),
    }
    command = suite.command("-k", "accuracy", "--junitxml=junit.xml", "-o", "junit_logging=all")
    with CommandLines() as watch:
        done = forked.run(
            [*command, "--benchmark-json=b.json", *options], cwd=suite.folder, env=environment
        )
    output = done.stdout + done.stderr
    write_reports(suite.folder / "run", suite.folder / "reports")
    found = leaks(suite.folder, output, frozenset({path, site, says, arguments}))
    return Searched(suite, done.returncode, output, found, watch)


@pytest.fixture(scope="module")
def died(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    return _session(make_suite(tmp_path_factory.mktemp("died")), "die-at-start", "-v")


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    return _session(make_suite(tmp_path_factory.mktemp("hung")), "never-ready", "-n", "2")


def test_at_least_twenty_kinds_are_planted() -> None:
    assert len({one.kind for one in SECRETS}) >= 20


def test_a_server_that_dies_tells_no_secret(died: Searched) -> None:
    assert died.status == 11, died.output
    assert not died.leaks
    assert "server_died" in died.records
    assert "***" in died.records  # its last lines were shown


def test_a_server_that_hangs_tells_no_secret(hung: Searched) -> None:
    assert hung.status == 11, hung.output
    assert not hung.leaks
    dumps = [*hung.suite.folder.rglob("*.evidence.txt")]
    assert dumps
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in dumps)
    assert any("processes:" in path.read_text() for path in dumps)


@pytest.mark.parametrize("session", ["died", "hung"])
def test_no_command_line_has_a_secret(session: str, request: pytest.FixtureRequest) -> None:
    found: Searched = request.getfixturevalue(session)
    assert found.command_lines.looked_at
    assert not found.command_lines.found


def test_the_raw_log_keeps_what_the_program_wrote_for_its_owner_alone(died: Searched) -> None:
    (log,) = died.suite.folder.rglob("server.err")
    assert log.stat().st_mode & 0o777 == 0o600
    assert (died.suite.folder / "says").read_bytes() in log.read_bytes()


def test_the_terminal_gets_nothing_that_it_obeys(died: Searched, hung: Searched) -> None:
    for found in (died, hung):
        written = [found.output, found.records]
        written += [
            (found.suite.folder / name).read_text() for name in ("run/summary.md", "junit.xml")
        ]
        for text in written:
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "\\x1b]0;owned\\x07" in died.output
    assert "\\u202e" in (died.suite.folder / "run" / "summary.md").read_text()


def test_the_run_has_no_variable_that_nobody_listed(died: Searched) -> None:
    facts = json.loads((died.suite.folder / "run" / "run.json").read_text())
    assert {"GITHUB_PAT", "CI_JOB_JWT", "SESSION_COOKIE", "HF_TOKEN"}.isdisjoint(
        facts["environment"]
    )
    assert facts["environment"]["HF_ENDPOINT"] == "https://***@hub.example/api"


def test_a_rehearsal_tells_no_secret(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", *PLUGINS, "-p", "no:cacheprovider", "perf_tests"]
    command += ["--rehearse", "--run-dir", str(tmp_path / "run"), "-k"]
    command += ["b200-r1-fp4-fp16kv-max-throughput and not floor"]
    environment = {
        **inherited("PERFGATE_", *TRACES),
        **ONLY_NEEDED_PLUGINS,
        **variables("environment"),
        "PERFGATE_HOME": str(tmp_path / "home"),
        "PERFGATE_LEASES": os.environ["PERFGATE_LEASES"],
    }
    command.append(f"--junitxml={tmp_path / 'junit.xml'}")
    with CommandLines() as watch:
        done = forked.run(command, cwd=ROOT, env=environment, timeout=400)
    assert done.returncode == 13, done.stdout
    assert len(write_reports(tmp_path / "run", tmp_path / "reports")) > 5
    assert not leaks(tmp_path, done.stdout + done.stderr, frozenset())
    assert not watch.found


def test_every_report_of_a_session_that_failed_shows_its_last_lines_masked(died: Searched) -> None:
    reports = {one.name: one.read_text() for one in (died.suite.folder / "reports").iterdir()}
    assert "exit status 11" in reports["output.log"]
    for name in ("report.json", "junit.xml"):
        assert "server_died" in reports[name]
        assert "***" in reports[name]
        assert "\\x1b]0;owned" in reports[name].replace("\\\\", "\\")
    for text in reports.values():
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_a_leak_into_a_report_would_be_found(died: Searched, tmp_path: Path) -> None:
    (secret, *_) = (one.secret for one in SECRETS if one.place == "log")
    text = (died.suite.folder / "reports" / "report.md").read_text()
    (tmp_path / "report.md").write_text(f"{text}{secret}")
    assert leaks(tmp_path, "", frozenset())
