"""The site file, whose faults are told with their lines, and its commands around each start."""

import signal
from dataclasses import replace
from pathlib import Path

import building
import psutil
import pytest
from refusals import refused
from tables import each, tables_of

from perfgate.core.errors import InputError, RunError, SeveralInputErrors
from perfgate.launchers import start_commands
from perfgate.launchers.base import launcher
from perfgate.launchers.site import DockerSite, Site, SlurmContainer, SlurmSite, load_site
from perfgate.launchers.start_commands import command_facts, commands_around, require_here
from perfgate.scenarios.scenario import Hardware, Launch

ROOT = Path(__file__).parents[2]


def written(folder: Path, text: str) -> Path:
    file = folder / "site.yaml"
    file.write_text(text)
    return file


def test_the_example_is_right_and_says_every_field() -> None:
    site = load_site(ROOT / "site.example.yaml")
    image = "nvcr.io#nvidia/tensorrt-llm/release:1.0.0"
    assert (site.slurm.partition, site.slurm.options) == ("batch", ("--comment=perfgate",))
    assert site.slurm.container == SlurmContainer(image, ("/models:/models",))
    assert site.docker.mounts == ("/models:/models:ro",)
    assert site.mpirun.hosts == ("node1", "node2")
    assert site.mpirun.mca == {"btl_tcp_if_include": "eth0"}
    assert (site.share_cpu, site.wait_for_gpus_s) == (True, 3600)
    text = (ROOT / "site.example.yaml").read_text()
    for part, defaults in ((site.slurm, Site().slurm), (site.docker, Site().docker)):
        left_out = {name for name, one in vars(part).items() if one == getattr(defaults, name)}
        assert {one for one in left_out if f"{one}:" not in text} <= {"reservation", "nodelist"}
    assert not [name for name in vars(site.mpirun) if f"{name}:" not in text]


def test_without_a_file_the_defaults_hold_else_the_named_one(suite_root, tmp_path, monkeypatch):
    monkeypatch.delenv("PERFGATE_SITE", raising=False)
    assert load_site() == Site()
    written(suite_root, "schema_version: 1\nslurm: {qos: high}\n")
    assert load_site() == Site(SlurmSite(qos="high"))
    other = written(tmp_path, "schema_version: 1\nslurm: {qos: low}\n")
    monkeypatch.setenv("PERFGATE_SITE", str(other))
    assert load_site() == Site(SlurmSite(qos="low"))
    monkeypatch.setenv("PERFGATE_SITE", str(tmp_path / "missing.yaml"))
    refused(load_site, match="PERFGATE_SITE: no such file", error=SeveralInputErrors)


@each("lines, words", tables_of("site_file")["wrong"])
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, lines: str, words: str) -> None:
    file = written(tmp_path, f"schema_version: 1\n{lines}\n")
    caught = refused(load_site, file, error=SeveralInputErrors)
    (error,) = caught.errors
    assert f"{file}:" in str(error)
    assert words in str(error)


def test_commands_of_a_start_are_lists_of_words_and_null_leaves_it_to_docker(tmp_path) -> None:
    lines = "before: [[sudo, -n, nvidia-smi, -pm, '1'], ['true']]\ncommand_timeout_s: 5"
    lines += "\ndocker: {user: null, cache: null, ipc: null}"
    file = written(tmp_path, f"schema_version: 1\n{lines}\n")
    before = (("sudo", "-n", "nvidia-smi", "-pm", "1"), ("true",))
    docker = DockerSite(user=None, cache=None, ipc=None)
    assert (site := load_site(file)) == Site(docker=docker, before=before, command_timeout_s=5.0)
    assert (site.file, site.after) == (file, ())


def test_an_empty_file_is_told_what_to_hold(tmp_path: Path) -> None:
    with pytest.raises(SeveralInputErrors, match=r"site\.example\.yaml"):
        load_site(written(tmp_path, ""))
    with pytest.raises(SeveralInputErrors, match="schema_version: missing"):
        load_site(written(tmp_path, "slurm: {}\n"))


# Commands: run before and after each fresh start, in order, and never left behind.

FILE = Path("/gate/site.yaml")


class Notes:
    """A file that commands append a word to, and the folder of a start."""

    def __init__(self, tmp_path: Path) -> None:
        self.file = tmp_path / "notes"
        self.folder = tmp_path / "start-1-new"
        self.folder.mkdir()

    def argv(self, word: str, then: str = ":") -> tuple[str, ...]:
        return ("sh", "-c", f'printf "%s " "$1" >> "$0"; {then}', str(self.file), word)

    def around(self, *before: tuple[str, ...], after=(), **more):
        """The commands around a start."""
        site = Site(before=before, after=tuple(after), file=FILE, **more)
        return commands_around(site, self.folder)

    def refused(self, *before: tuple[str, ...], **more) -> RunError:
        """Why the engine is not started."""
        with pytest.raises(RunError) as caught, self.around(*before, **more):
            pytest.fail("the engine is not started")
        return caught.value

    @property
    def words(self) -> list[str]:
        return self.file.read_text().split() if self.file.exists() else []

    def left(self) -> list[psutil.Process]:
        """Processes of the commands that are still there."""
        running = psutil.process_iter(["cmdline"])
        return [one for one in running if str(self.file) in (one.info["cmdline"] or ())]


@pytest.fixture
def noted(tmp_path: Path):
    """None of the commands is left."""
    noted = Notes(tmp_path)
    yield noted
    assert noted.left() == []


def test_they_run_in_order_around_the_start_and_leave_their_logs(noted: Notes) -> None:
    before = (noted.argv("a", "echo set"), noted.argv("$HOME;b"))
    with noted.around(*before, after=[noted.argv("c"), noted.argv("d")]):
        assert noted.words == ["a", "$HOME;b"]  # no shell reads it
    assert noted.words == ["a", "$HOME;b", "c", "d"]
    log = noted.folder / "before-0.out"
    assert log.read_text() == "set\n"
    assert log.stat().st_mode & 0o777 == 0o600
    commands = {"before-0", "before-1", "after-0", "after-1", "after-guard"}
    assert {path.stem for path in noted.folder.glob("*.sh")} == commands


def test_without_commands_nothing_is_started(noted: Notes) -> None:
    with commands_around(Site(), noted.folder):
        pass
    assert list(noted.folder.iterdir()) == []


def test_a_failed_command_ends_the_start_and_after_runs_all_the_same(noted: Notes) -> None:
    fails = noted.argv("b", "echo Insufficient Permissions; exit 4")
    fails = (*fails, "--api-key", "hunter2hunter2")
    after = (*noted.argv("after"), "--token", "hunter2hunter2")
    error = noted.refused(noted.argv("a"), fails, noted.argv("c"), after=[after])
    assert error.failure == "site_command"
    assert error.message.startswith(f"{FILE}: before[1]: `sh -c ")
    assert error.message.endswith("--api-key '***'`: ended with status 4")
    assert error.evidence == ("Insufficient Permissions",)
    assert "site file" in error.hint
    assert noted.words == ["a", "b", "after"]
    texts = [path.read_text() for path in noted.folder.iterdir()]
    assert not [text for text in texts if "hunter2" in text]


def test_a_command_that_hangs_is_ended_and_a_missing_one_is_named(noted: Notes) -> None:
    hangs, after = noted.argv("a", "sleep 600; true"), noted.argv("after")
    error = noted.refused(hangs, after=[after], command_timeout_s=0.7)
    assert "did not end within 0.7 s (command_timeout_s)" in error.message
    assert noted.words == ["a", "after"]
    error = noted.refused(("no-such-program", "-pm", "1"))
    assert "before[0]: `no-such-program -pm 1`: " in error.message
    assert "not found on PATH" in error.message


def test_all_of_after_runs_and_the_first_failure_is_told(noted: Notes) -> None:
    after = [noted.argv("a", "exit 3"), noted.argv("b", "exit 4")]
    first = pytest.raises(RunError, match=r"(?s)after\[0\]: .* ended with status 3")
    with first, noted.around(after=after):
        pass
    assert noted.words == ["a", "b"]
    # The error of a start stays its own.
    with pytest.raises(RunError, match="out of memory"), noted.around(after=after[:1]):
        raise RunError("oom", "out of memory")
    assert noted.words == ["a", "b", "a"]


def test_the_guard_finishes_what_an_interruption_leaves(noted: Notes, monkeypatch) -> None:
    after = [noted.argv("a", "sleep 1.5; echo put back"), noted.argv("b")]
    monkeypatch.setattr(start_commands, "_run", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), noted.around(after=after):
        pass
    assert noted.words == ["a", "b"]
    assert "put back" in (noted.folder / "after-guard.out").read_text()  # not ended half-way


def test_a_record_has_them_without_secrets() -> None:
    site = Site(before=(("set", "--token", "hunter2"), ("nvidia-smi", "-pm", "1")))
    assert command_facts(site) == {"before": "set --token '***'; nvidia-smi -pm 1"}
    assert command_facts(Site()) == {}


@each(
    "name, changes",
    [
        ("slurm", {}),
        ("mpirun", {}),
        ("local", {"launch": Launch("srun")}),
        ("local", {"hardware": Hardware("B200", 16, 2), "launch": Launch("mpirun")}),
    ],
)
def test_engines_on_other_nodes_are_refused(name: str, changes: dict) -> None:
    far = replace(building.SCENARIO, id="far", **changes)
    site = Site(after=(("true",),), file=FILE)
    with pytest.raises(InputError, match=r"(?s)/gate/site.yaml: after: .*: far with.*an epilog"):
        require_here(site, launcher[name](), [far])
    require_here(Site(), launcher[name](), [far])
    for here in ("local", "docker"):
        require_here(site, launcher[here](), [building.SCENARIO])
