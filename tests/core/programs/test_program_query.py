"""Programs are asked with a limit of time; git runs nothing that a repository names."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tables import each
from witnesses import eventually

from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.gate_repo import GateRepo, git_state
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.program_query import QUIET, Answer, NoStatus, ask_here, git_answer
from perfgate.engines.served.discovery import question
from perfgate.engines.tensorrt_llm.installed_options import installed
from perfgate.machine.conditions.processes import began


def test_output_and_status() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    answer = ask_here((sys.executable, "-c", code), 60)
    assert answer == Answer(3, "out\n", "err\n")
    assert (answer.is_good, answer.text) == (False, "out\nerr\n")
    assert answer.trouble == "it ended with status 3: err"
    assert (answer.cause, answer.why, answer.refusal) == (None, "", "")


@each(
    ("code", "shown"),
    [
        ("import sys; print(repr(sys.stdin.read()))", "''\n"),
        ("import os; print(os.environ.get('A'), 'HOME' in os.environ)", "b False\n"),
        (r"import sys; sys.stdout.buffer.write(b'a\xff')", "a\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_no_input_an_environment_of_its_own_and_any_byte(code: str, shown: str) -> None:
    assert ask_here((sys.executable, "-c", code), 60, {"A": "b"}).stdout == shown


def test_too_long() -> None:
    answer = ask_here((sys.executable, "-c", "import time; time.sleep(60)"), 0.5)
    assert answer.status is None
    assert answer.cause is NoStatus.TOO_LONG
    assert answer.text == answer.trouble == f"no answer from {sys.executable} within 0.5 s"


def test_too_long_ends_what_the_program_started(tmp_path: Path) -> None:
    """It holds the output open: who waits for its end would wait for as long as it runs."""
    told = tmp_path / "pid"
    words = f"sleep 300 & echo $! >{told}; wait"
    assert ask_here(("sh", "-c", words), 2).cause is NoStatus.TOO_LONG
    eventually(lambda: not began(int(told.read_text())))


def test_an_interrupt_while_the_program_ends_stays_one() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            ask_here(("sleep", "0.4"), 60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_program_that_is_missing_or_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\n")
    for name, cause, refusal in (
        ("missing", NoStatus.MISSING, "No such file or directory"),
        ("program", NoStatus.NOT_STARTED, "Permission denied"),
    ):
        answer = ask_here((str(tmp_path / name),), 60)
        assert (answer.status, answer.cause, answer.refusal) == (None, cause, refusal)
        assert str(tmp_path / name) in answer.why


# Repositories of others: whatever their settings and attributes name, git runs none of it.

BASELINE = Path("baselines/8xB200/serve/abc.json")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Attack:
    """A repository whose monitor, hooks and filters each write a file of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.marks = folder / "repository", folder / "marks"
        self.marks.mkdir()
        (self.folder / BASELINE).parent.mkdir(parents=True)
        (self.folder / BASELINE).write_text("{}\n")
        (self.folder / "python" / "sglang").mkdir(parents=True)
        (self.folder / "python" / "sglang" / "__init__.py").touch()
        git(folder, "init", "--quiet", str(self.folder))
        for name, value in (("user.name", "Eve"), ("user.email", "eve@example.org")):
            git(self.folder, "config", name, value)
        git(self.folder, "add", ".")
        git(self.folder, "commit", "--quiet", "-m", "x")
        (self.folder / ".gitattributes").write_text("*.json filter=a=b.c\n*.py filter=long\n")
        hooks = self.folder / ".git" / "hooks"
        for hook in ("post-index-change", "reference-transaction", "post-checkout"):
            (hooks / hook).write_text(f"#!/bin/sh\n{self.writing(hook)}\n")
            (hooks / hook).chmod(0o755)
        for name in ("core.fsmonitor", "filter.a=b.c.clean", "filter.a=b.c.smudge"):
            git(self.folder, "config", name, f"{self.writing(name)}; cat")
        git(self.folder, "config", "filter.a=b.c.required", "true")
        git(self.folder, "config", "core.autocrlf", "true")
        git(self.folder, "config", "filter.long.process", self.writing("filter.long.process"))
        for file in (BASELINE, Path("python/sglang/__init__.py")):
            os.utime(self.folder / file, (1, 1))  # git looks into what may have changed

    def writing(self, name: str) -> str:
        return f"touch '{self.marks / name}'"

    def done(self) -> list[str]:
        return sorted(file.name for file in self.marks.iterdir())


@pytest.fixture
def attack(tmp_path: Path) -> Attack:
    return Attack(tmp_path)


def test_the_repository_is_an_attack_on_who_calls_git_as_it_is(attack: Attack) -> None:
    subprocess.run(["git", "-C", attack.folder, "status"], capture_output=True, check=False)
    assert {"core.fsmonitor", "filter.a=b.c.clean", "filter.long.process"} <= set(attack.done())


def test_the_state_of_a_checkout(attack: Attack) -> None:
    state = git_state(attack.folder)
    assert state["dirty"] is True  # the attributes are not committed
    assert state["commit"] == git(attack.folder, "-c", "core.fsmonitor=false", "rev-parse", "HEAD")
    assert attack.done() == []


def test_a_proposal_in_a_gate_repository(attack: Attack, tmp_path: Path) -> None:
    quiet = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    attributes = (attack.folder / ".gitattributes").read_text()
    (attack.folder / "baselines" / ".gitattributes").write_text(attributes)
    git(attack.folder, *quiet, "add", ".gitattributes", "baselines/.gitattributes")
    tree = git(attack.folder, *quiet, "write-tree")
    commit = git(attack.folder, *quiet, "commit-tree", "-p", "HEAD", "-m", "Filters", tree)
    git(attack.folder, *quiet, "update-ref", "HEAD", commit)
    assert attack.done() == []
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    repo = GateRepo(attack.folder / "baselines", scratch)
    file = repo.baselines / BASELINE.relative_to("baselines")
    assert file.read_bytes() == b"{}\n"
    file.write_text('{"a": 1}\n')
    repo.commit([file], "x")
    repo.make_branch("new")
    assert repo.patch().count('+{"a": 1}') == 1
    assert git_answer(attack.folder, "show", f"new:{BASELINE}").stdout == '{"a": 1}\n'
    assert attack.done() == []


def test_a_clone_of_an_engine(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    head = git_state(attack.folder)["commit"]
    assert EngineRepo(attack.folder).ancestors([str(head)], str(head)) == {head: 0}
    monkeypatch.setenv("TRT_LLM_VERSION", "1.2.0")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert installed(Locations(source=attack.folder)).commit == head
    argv = [sys.executable, "-c", question(), "sglang", "sglang", *QUIET]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(attack.folder / "python")}
    told = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    assert str(head) in told.stdout
    assert attack.done() == []
