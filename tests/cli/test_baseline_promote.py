"""`perfgate baseline promote` with --branch or --patch, in real git repositories."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_runs
import pytest
from forked import session
from plain_records import record
from registered_standins import registered_standins
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited
from sides_made import measurement
from tables import each

from perfgate.baselines import Store, read, suite_store
from perfgate.baselines.decisions import pin_anchor
from perfgate.cli.main import main
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.probe import all_probes

SCENARIO = "h200-serve"
HARDWARE = "1xH200"
NO_CLEAN_COMMIT = "not that of a clean commit"
STANDINS = Path(__file__).parents[1] / "standins"
_WHO = {
    f"GIT_{role}_{what}": text
    for role in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "Ada"), ("EMAIL", "ada@example.com"))
}
Capture = pytest.CaptureFixture[str]
NEXT = {"engine": "b" * 40, "version": "1.1.0"}
Make = Callable[..., Path]


def git(folder: Path, *words: str, **settings: Any) -> str:
    """What git prints."""
    done = subprocess.run(
        ("git", "-C", folder, *words), check=False, capture_output=True, text=True, **settings
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def state(folder: Path) -> tuple[str, ...]:
    """All of a repository that a person sees: refs, index, tree."""
    return (
        git(folder, "for-each-ref"),
        git(folder, "rev-parse", "--symbolic-full-name", "HEAD"),
        git(folder, "ls-files", "--stage"),
        git(folder, "status", "--porcelain", "--ignored"),
    )


@pytest.fixture
def suite(two_scenarios: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A gate repository in git, with a scenario for one H200 and no baseline."""
    for name, text in {**_WHO, "GIT_CONFIG_GLOBAL": os.devnull}.items():
        monkeypatch.setenv(name, text)
    root = two_scenarios.parent
    (root / "baselines" / "README.md").write_text("What people accepted.\n")
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root, "A suite")
    return root


def commit(root: Path, message: str) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", message)


@pytest.fixture
def run(suite: Path, tmp_path: Path) -> Make:
    """Makes runs of the scenario: one load probe, two starts, as a session leaves them."""
    (scenario,) = (one for one in load_scenarios(suite / "scenarios") if one.id == SCENARIO)
    probe = next(one for one in all_probes(scenario) if one.is_load)

    def make(
        name: str,
        speed: float = 1000.0,
        *,
        verdict: str = "NO_BASELINE",
        ends: bool = True,
        facts: dict[str, Any] | None = None,
        engine: str = "a" * 40,
        version: str = "1.0.0",
        **changes: Any,
    ) -> Path:
        plain = {**made_runs.facts(name, "08:00"), "versions": {}, **(facts or {})}
        del plain["id"], plain["schema_version"]
        folder = RunFolder.create(tmp_path / "runs" / name, plain)
        subject = {"scenario": SCENARIO, "probe": probe.label}
        made = {
            **subject,
            "hardware": HARDWARE,
            "seconds": 300.0,
            "engine": {"name": "llama.cpp", "version": version, "commit": engine},
            "fingerprint": {"content": probe.content_hash(), "cpu": "Grace", "gpus": "H200"},
            "disturbed": [],
            **changes,
        }
        for start, value in enumerate((speed, speed * 1.004), start=1):
            began = {"started": f"2026-11-20T{len(name):02d}:{start:02d}:00+00:00"}
            line = measurement({"output_throughput": value}, start, **{**made, **began})
            folder.record(record("measurement", line))
        end = {"test": probe.id, "name": probe.id, **subject, "verdict": verdict, "judgements": []}
        end["synthetic"] = bool(changes.get("synthetic"))
        folder.record(record("verdict", end))
        if ends:
            told = {"status": 0, "gate": False, "recording": True, "failed": [], "bugs": []}
            folder.record(record("ended", {**told, "unwritten": False}))
        folder.close()
        return folder.path

    return make


def propose(*words: object) -> int:
    """Promote for review, into the branch ``new`` if no other is named."""
    texts = [*map(str, words)]
    named = any(text.startswith(("--branch", "--patch")) for text in texts)
    return main(["baseline", "promote", *texts, *([] if named else ["--branch=new"])])


def accepted(suite: Path, folder: Path, *words: str) -> str:
    """Propose a run and merge its branch; the commit's message."""
    assert propose(folder, "--branch", "proposed", *words) == 0
    git(suite, "merge", "--quiet", "--ff-only", "proposed")
    git(suite, "branch", "--quiet", "-d", "proposed")
    return git(suite, "log", "-1", "--format=%B")


def test_a_branch_holds_the_baseline_and_nothing_else_changes(
    suite: Path, run: Make, capsys: Capture
) -> None:
    (suite / "waivers.yaml").write_text("not committed\n")
    git(suite, "add", "waivers.yaml")
    (suite / "baselines" / "README.md").write_text("changed\n")
    before = state(suite)
    assert propose(run("one"), "--by", "Ada") == 0, capsys.readouterr().err
    assert "branch: new" in capsys.readouterr().out
    after = state(suite)
    assert after[1:] == before[1:]
    assert set(after[0].splitlines()) - set(before[0].splitlines()) == {
        f"{git(suite, 'rev-parse', 'new')} commit\trefs/heads/new"
    }
    changed = git(suite, "diff", "--name-status", "main..new").splitlines()
    assert f"A\tbaselines/{HARDWARE}/{SCENARIO}/{'a' * 40}.json" in changed
    assert all(one.split("\t")[1].startswith("baselines/") for one in changed)
    assert git(suite, "log", "-1", "--format=%an <%ae>", "new") == "Ada <ada@example.com>"


def test_the_log_reads_as_a_history_of_accepted_changes(suite: Path, run: Make) -> None:
    first = accepted(suite, run("one"))
    second = accepted(suite, run("three", 1012.0, **NEXT, verdict="PASS"))
    subjects = git(suite, "log", "--format=%s", "--", "baselines").splitlines()
    assert subjects == [
        f"Baseline {SCENARIO} on {HARDWARE}: llama.cpp 1.1.0 bbbbbbb, same level",
        f"Baseline {SCENARIO} on {HARDWARE}: llama.cpp 1.0.0 aaaaaaa, the first",
        "A suite",
    ]
    assert "There is no baseline before it, and no anchor." in first
    assert "Against the baseline before, llama.cpp 1.0.0 aaaaaaaaaaaa (" in second
    (row,) = (line for line in second.splitlines() if line.startswith("c"))
    assert "+1.2 %" in row
    assert row.split()[-1] == "PASS"
    for fact in ("Runs: three", "Accepted-by: Ada <ada@example.com>", "Machine: 1xH200; cpu Grace"):
        assert fact in second
    assert "(2 starts, 1 session)" in second
    stored = suite_store().path(HARDWARE, SCENARIO, "b" * 40)
    assert read(stored).accepted_by == "Ada <ada@example.com>"


def test_a_patch_goes_through_git_am_in_another_clone(
    suite: Path, run: Make, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(suite), str(other))
    before = state(suite)
    # What would end the message, name another author or be a comment, if it began a line.
    reason = "# [why]\n---\nFrom: Eve <eve@example.com>\ndiff --git a/x b/x\n-- >8 --\n`$(id)`"
    patch = tmp_path / "one.patch"
    git(suite, "config", "diff.noprefix", "true")
    git(suite, "config", "format.attach", "true")
    assert propose(run("one"), "--patch", patch, "--reason", reason, "--by=--Grace") == 0
    assert state(suite) == before
    git(other, "am", "--quiet", str(patch))
    assert git(other, "log", "-1", "--format=%an") == "Ada"
    message = git(other, "log", "-1", "--format=%B")
    assert "Reason: # [why] --- From: Eve" in message
    assert message.endswith("Accepted-by: --Grace")
    found = read(other / "baselines" / HARDWARE / SCENARIO / f"{'a' * 40}.json")
    assert "`$(id)`" in found.reason


def test_a_pull_request_says_what_the_commit_says(suite: Path, run: Make, tmp_path: Path) -> None:
    accepted(suite, run("one"))
    text = tmp_path / "body.md"
    slower = run("four", 900.0, **NEXT, verdict="REGRESSION")
    assert propose(slower, "--reason", "\n```\n@all <b>checked</b>", "--body", text) == 0
    outside, message, end = re.split(r"^````*\n", text.read_text(), flags=re.MULTILINE)
    assert "**This accepts a loss:**" in outside
    assert "-10.0 %" in outside
    assert "@all" not in outside
    assert "Reason: ``` @all <b>checked</b>\n" in message
    assert message.strip() == git(suite, "log", "-1", "--format=%B", "new")
    assert end == ""
    stored = git(suite, "show", f"new:baselines/{HARDWARE}/{SCENARIO}/{'b' * 40}.json")
    assert json.loads(stored)["accepted"]["change"] == "regression"


class TestRefused:
    """Each leaves the repository as it was."""

    @pytest.fixture
    def refused(self, suite: Path, capsys: Capture) -> Callable[..., str]:
        def ask(*words: object) -> str:
            before = state(suite)
            capsys.readouterr()
            assert propose(*words) == 2
            assert state(suite) == before
            return capsys.readouterr().err

        return ask

    def test_a_loss_without_a_reason(self, suite: Path, run: Make, refused: Any) -> None:
        """Also one that its run could not see, as it was judged against something else."""
        first = run("one")
        accepted(suite, first)
        assert "the baseline is there already" in refused(first)
        said = refused(run("four", 900.0, **NEXT, verdict="REGRESSION"))
        assert "its run ended in REGRESSION" in said
        assert "--reason 'why this loss is right'" in said
        unseen = run("fifth", 900.0, **NEXT, verdict="PASS")
        assert "-10.0 % against the baseline before, band" in refused(unseen)
        assert propose(unseen, "--reason", "answers are checked now") == 0

    def test_a_loss_against_the_anchor_alone(self, suite: Path, run: Make, refused: Any) -> None:
        accepted(suite, run("one"))
        middle = run("four", 900.0, **NEXT, verdict="REGRESSION")
        accepted(suite, middle, "--reason", "checked")
        first = suite_store().path(HARDWARE, SCENARIO, "a" * 40)
        pin_anchor(first, by="Ada", reason="the release")
        commit(suite, "Pin the anchor")
        said = refused(run("fifth", 900.0, engine="c" * 40, version="1.2.0", verdict="PASS"))
        assert "against the anchor" in said
        assert "against the baseline before" not in said

    @each(
        "changes, said",
        [
            ({"facts": {"synthetic": True}, "synthetic": True}, "mock programs made its numbers"),
            ({"synthetic": True}, "or its numbers are synthetic"),
            ({"facts": {"injected": ["max_batch_size=1"]}}, "injected: ['max_batch_size=1']"),
            ({"injected": ["max_batch_size=1"]}, "its settings were injected"),
            ({"disturbed": ["GPU 0 was used by 4711"]}, "GPU 0 was used"),
            ({"ends": False}, "the run did not end"),
            ({"fingerprint": {"content": "0123"}}, "content 0123, now the suite has"),
            ({"scenario": "other-serve"}, "no such scenario"),
            ({"engine": "unknown"}, NO_CLEAN_COMMIT),
            ({"engine": "4e55fb9-dirty"}, NO_CLEAN_COMMIT),
            ({"version": "1.0.0.dev3+g4e55fb9.d20261120"}, NO_CLEAN_COMMIT),
            ({"version": ""}, NO_CLEAN_COMMIT),
            ({"verdict": "INCONCLUSIVE"}, "nothing in this run can become a baseline"),
        ],
    )
    def test_a_run_that_proves_nothing(
        self, tmp_path: Path, run: Make, refused: Any, changes: dict[str, Any], said: str
    ) -> None:
        assert said in refused(run(tmp_path.name, **changes))

    def test_a_branch_that_cannot_be(self, suite: Path, run: Make, refused: Any) -> None:
        """Of one below another git finds out last; what files it has made by then are no one's."""
        git(suite, "branch", "taken")
        folder = run("one")
        for branch in ("--force", "a b", "a..b", "HEAD", "@{-1}", "a\nb", "$(id)^"):
            assert "not a valid branch name" in refused(folder, f"--branch={branch}")
        assert "already exists" in refused(folder, "--branch", "taken")
        assert "git branch failed" in refused(folder, "--branch", "taken/below")

    def test_nobody_who_accepts_it(
        self, run: Make, refused: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in _WHO:
            monkeypatch.delenv(name)
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.useConfigOnly")
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
        folder = run("one")
        assert "git config user.name" in refused(folder)
        assert "git config user.name" in refused(folder, "--by", "Ada")

    def test_a_link_among_the_baselines(
        self, suite: Path, run: Make, refused: Any, tmp_path: Path
    ) -> None:
        (suite / "baselines" / HARDWARE).symlink_to(tmp_path)
        commit(suite, "A link")
        (suite / "baselines" / HARDWARE).unlink()
        assert "no regular file" in refused(run("one"))
        git(suite, "checkout", "--quiet", "--", ".")

    def test_a_folder_that_is_not_in_git(
        self, suite: Path, run: Make, monkeypatch: pytest.MonkeyPatch, capsys: Capture
    ) -> None:
        monkeypatch.setenv("PERFGATE_BASELINES", str(suite.parent / "elsewhere"))
        assert propose(run("one")) == 2
        assert "not a git repository" in capsys.readouterr().err


def recorded(suite: Path, folder: Path) -> None:
    """A real session with --record, of the stand-in engine; its machine has its own store."""
    words = ("-m", "standin", "--record", "--engine-commit", "aaa", "--run-dir", str(folder))
    plugins = (*BENCHMARK, "-p", "standin")
    root = Path(__file__).parents[2]
    environment = {
        **inherited(),
        **ONLY_NEEDED_PLUGINS,
        "PYTHONPATH": str(STANDINS),
        "PERFGATE_STANDIN_COUNTER": str(folder.parent / "starts"),
        "PERFGATE_HOME": str(folder.parent / "home"),
    }
    status, said = session([*plugins, str(root / "perf_tests"), *words], suite, environment)
    assert status == 0, said


@pytest.mark.slow
def test_the_last_of_three_nights_is_enough_on_another_machine(
    suite: Path, tmp_path: Path, capsys: Capture
) -> None:
    """A pipeline's job without GPUs has no store, but the run folder of the last night."""
    text = (STANDINS / "standin.yaml").read_text()
    for was, now in (
        ("reference: self", "reference: stored"),
        ("reference_starts: 4", "reference_starts: 1"),
        ("noise: measured", "bands: {output_throughput: 0.25}"),
    ):
        text = text.replace(was, now)
    (suite / "scenarios" / "standin.yaml").write_text(text)
    commit(suite, "A scenario of the stand-in")
    (tmp_path / "runs").mkdir()
    ready = []
    for number in (1, 2, 3):
        night = tmp_path / "runs" / f"night-{number}"
        recorded(suite, night)
        assert main(["baseline", "ready", str(night)]) == 0
        ready.append(capsys.readouterr().out)
    assert ready == ["", "", "standin-serve\n"]
    words = (night, "--scenario", "standin-serve", "--import", "standin", "--branch", "nights")
    with registered_standins():
        assert propose(*words) == 0, capsys.readouterr()
    message = git(suite, "log", "-1", "--format=%B", "nights", "--", "baselines")
    assert message.startswith("Baseline standin-serve on cpu: stand-in ")
    noise = "baselines/noise/cpu/history/night-3.json"  # the session wrote it, too
    assert git(suite, "show", f"nights:{noise}") == (suite / noise).read_text().strip()
    git(suite, "checkout", "--quiet", "--force", "nights")
    (stored,) = Store(suite / "baselines").list()
    assert (read(stored).sessions, {*read(stored).entries}) == (3, {"c1", "c2", "sums"})
