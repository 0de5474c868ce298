"""Printed scripts of hostile scenarios: whatever a field holds, no word of it becomes a command."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hostile import BASES, SERVED, Desk, Keys, asked, clean_environment, strings, with_text
from sizes import sized
from tables import each

# Each is one line: a field that takes it must hold it, and nothing more.
TEXTS = (
    "'; planted; '",
    '"; $(planted); `planted`; "',
    "`planted`",
    "$(planted)",
    "x; planted",
    "x|planted",
    "x && planted #",
    "--env=x planted",
    "-x",
    "examples/$(planted).py",
    "Zoë’s “$(planted)” №1",
    "\\",
    "!planted",
    "EOF",
    "%s${IFS}$(planted)",
    "{x,$(planted)}",
)
# A line that ends in any way that a shell, a terminal or a person could take for an end.
LINES = ("x\nplanted\n", "x\r\nplanted\r\n", "x\rplanted", "x\u2028planted", "x\x85planted")
EVERYWHERE = sized(LINES[:1], LINES)
CONTROLS = ("\x00", "\x07", "\x1b]0;planted\x07", "\x7f", "\x9b31m", "\u202eplanted", "\u2066x")

OBEYED = ("BASH_ENV", "ENV", "PS4", "LD_PRELOAD", "PATH")
NO_NAMES = ("A\n", "A; planted", "A=1", "$(planted)")
VARIABLES: tuple[Keys, ...] = (("environment",), ("launch", "pass_on"))

SLURM = ("command", "--launcher", "slurm")
MPIRUN = ("command", "--launcher", "mpirun")
DOCKER = ("command", "--launcher", "docker")
VERBS = (("command",), ("command", "--container"), SLURM, MPIRUN, DOCKER)


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    clean_environment(monkeypatch)
    site = tmp_path / "site.yaml"
    site.write_text("schema_version: 1\nslurm: {lost_after_s: 3}\n")
    monkeypatch.setenv("PERFGATE_SITE", str(site))
    return Desk(tmp_path, capsys)


def accepted(desk: Desk, base: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The scenario with the text wherever it is taken."""
    taken = [
        place
        for place in strings(base)
        if desk.printed(with_text(base, text, place), "command") is not None
    ]
    return with_text(base, text, *taken)


def model_in(models: Path) -> Path:
    """A folder of models with the scenario's in it."""
    (models / "small").mkdir(parents=True)
    (models / "small" / "config.json").write_text("{}")
    (models / "small" / "model.safetensors").write_text("")
    return models


class TestOneLine:
    @pytest.mark.nightly
    @pytest.mark.parametrize("text", sized(TEXTS[::3], TEXTS))
    def test_no_field_of_a_served_scenario_becomes_a_command(self, desk: Desk, text: str) -> None:
        scenario = accepted(desk, SERVED, text)
        assert scenario["title"] == text, "some fields take any line"
        for verb in VERBS:
            desk.run_harmless(desk.printed(scenario, *verb))

    @pytest.mark.nightly
    @pytest.mark.parametrize("by", ["mpirun", "srun", "sbatch"])
    def test_nor_one_of_a_launched_scenario(self, desk: Desk, by: str) -> None:
        for text in sized(TEXTS[:2], TEXTS):
            scenario = accepted(desk, BASES[by], text)
            for verb in (("command",), SLURM, MPIRUN):
                desk.run_harmless(desk.printed(scenario, *verb))


class TestSeveralLines:
    @pytest.mark.nightly
    def test_are_refused_everywhere(self, desk: Desk) -> None:
        for by in ("served", "mpirun"):  # together they have all fields
            for text in (*LINES, *CONTROLS):
                places = list(strings(BASES[by]))
                for place in places if text in EVERYWHERE else places[1:2]:
                    hostile = with_text(BASES[by], text, place)
                    taken = desk.printed(hostile, "command") is not None
                    assert not taken, f"{by}: {place} takes {text!r}"


@each(
    "place, text",
    [
        # Variables that a shell would obey.
        *((("environment", name), "$(planted)") for name in OBEYED),
        # And names that are none.
        *(((*place, name), "1") for name in NO_NAMES for place in VARIABLES),
    ],
)
def test_a_variable_has_a_harmless_name(desk: Desk, place: Keys, text: str) -> None:
    assert desk.printed(with_text(BASES["srun"], text, place), "command") is None


class TestSite:
    """What this place says reaches scripts, too."""

    @pytest.mark.nightly
    @pytest.mark.parametrize("text", sized(TEXTS[::3], TEXTS))
    def test_is_read_as_no_command(
        self, desk: Desk, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        names = ("partition", "account", "qos", "constraint", "reservation", "nodelist", "gres")
        slurm = {
            **dict.fromkeys((*names, "memory"), text),
            "options": [text],
            "step_options": [text],
            "container": {"image": text, "mounts": [text]},
            "lost_after_s": 3,
        }
        site = tmp_path / "hostile-site.yaml"
        site.write_text(json.dumps({"schema_version": 1, "slurm": slurm}))
        models = model_in(tmp_path / f"models {text.replace('/', '_')}")
        for name, value in {
            "PERFGATE_SITE": str(site),
            "PERFGATE_MODELS": str(models),
            "PERFGATE_CONTAINER_IMAGE": text,
            "PERFGATE_CONTAINER_MOUNTS": text,
            "PERFGATE_CONTAINER_WORKDIR": text,
            "PATH": f"{desk.bin}:/usr/bin:/bin",
        }.items():
            monkeypatch.setenv(name, value)
        for verb in (("command", "--here"), SLURM):
            script = desk.run_harmless(desk.printed(asked("srun"), *verb))
        options = [line for line in script.splitlines() if line.startswith("#SBATCH")]
        assert len(options) == 11, "one line each"

    def test_hosts_are_no_options_of_ssh(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PERFGATE_HOSTS", "-oProxyCommand=planted,n2")
        assert desk.printed(asked("mpirun"), "command", "--here") is None

    def test_of_several_lines_is_refused(
        self, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        site = tmp_path / "hostile-site.yaml"
        monkeypatch.setenv("PERFGATE_SITE", str(site))
        for text in (*LINES, *CONTROLS):
            site.write_text(json.dumps({"schema_version": 1, "slurm": {"partition": text}}))
            assert desk.printed(BASES["srun"], *SLURM) is None, repr(text)


def test_a_script_is_utf_8_whatever_the_terminal_is(desk: Desk, tmp_path: Path) -> None:
    """An escape in place of a letter would name another folder."""
    models = model_in(tmp_path / "modèles № 1")
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps({"schema_version": 1, "scenarios": [asked("srun")]}))
    words = ("scenarios", "command", "--scenarios", str(file), "--here", "small-serve")
    done = subprocess.run(
        (sys.executable, "-m", "perfgate.cli.main", *words),
        env={
            "PATH": f"{desk.bin}:/usr/bin:/bin",
            "PERFGATE_MODELS": str(models),
            "PYTHONIOENCODING": "ascii",
        },
        capture_output=True,
        check=True,
    )
    shell = subprocess.run(
        ["bash", "-c", f"ls -d {named(done.stdout.decode())}"], capture_output=True, check=True
    )
    assert shell.stdout.decode() == f"{models}/small\n"


def named(script: str) -> str:
    """The word of the script that names the model's folder."""
    line = next(line for line in script.splitlines() if "trtllm-serve" in line)
    return line[line.index("'") : line.rindex("'") + 1]
