"""A scenario file with hostile text in every field, and the scripts made of it, run for real.

The text calls a program `planted`, which leaves a file behind. Everything else that the scripts
call is played by one program that does nothing, so nothing is measured and nothing leaves the
machine.
"""

import copy
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfgate.cli.main import main

Keys = tuple[str | int, ...]

# What a program does here: `curl` finds a server at its second try, a server waits to be stopped,
# a submitted job and the script of a rank are run.
PLAYED = """\
#!/bin/bash
case " $0 $* " in
  *.slurm" "*) exec bash "${@: -1}" ;;
  *benchmark.sh" "*) exec bash benchmark.sh ;;
  *"curl "*) [ -e "$PLAYED/asked" ] || { touch "$PLAYED/asked"; exit 7; } ;;
  *trtllm-serve*) exec sleep 60 ;;
esac
"""
PROGRAMS = """
curl docker mpirun srun sbatch scancel python trtllm-bench trtllm-serve trtllm-llmapi-launch
aiperf lm_eval vllm sleep
"""

SCENARIO = Path(__file__).parents[1] / "data" / "hostile_scenario.yaml"
SERVED: Mapping[str, Any] = yaml.safe_load(SCENARIO.read_text())


def _on_two_nodes(by: str, *left_out: str) -> dict[str, Any]:
    made = copy.deepcopy(dict(SERVED))
    for name in left_out:
        del made[name]
    made["hardware"] |= {"gpus": 16, "nodes": 2}
    made["engine"]["settings"]["tp"] = 16
    made["launch"] = {"by": by}
    return made


def launched(by: str) -> dict[str, Any]:
    """An offline benchmark on two nodes."""
    made = _on_two_nodes(by, "smoke", "accuracy", "listen")
    made["workload"] |= {"client": "trtllm-bench", "streaming": False}
    pass_on = {"CUDA_HOME": "/usr/local/cuda"}
    made["launch"] |= {"output": "bench.log", "time_limit": "01:00:00", "pass_on": pass_on}
    made["gate"] = {"metrics": ["output_throughput"]}
    return made


def asked(by: str) -> dict[str, Any]:
    """A server on two nodes that is asked for a first answer, which needs few programs here."""
    made = _on_two_nodes(by, "workload", "accuracy")
    del made["model"]["quantization"]
    made["gate"] = {"metrics": []}
    return made


BASES = {"served": SERVED, **{by: launched(by) for by in ("mpirun", "srun", "sbatch")}}


def strings(value: Any, at: Keys = ()) -> Iterator[Keys]:
    """The places of all texts in a scenario."""
    if isinstance(value, str):
        yield at
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from strings(part, (*at, name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from strings(part, (*at, number))


def with_text(base: Mapping[str, Any], text: str, *places: Keys) -> dict[str, Any]:
    """The scenario with that text in these places."""
    made = copy.deepcopy(dict(base))
    for *way, last in places:
        part: Any = made
        for key in way:
            part = part[key]
        part[last] = text
    return made


class Desk:
    """A folder to render and run scripts in."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self._file = folder / "hostile.yaml"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.planted = folder / "PLANTED"
        for name in PROGRAMS.split():
            self._program(name, PLAYED)
        self._program("planted", f"#!/bin/sh\n: > {self.planted}\n")

    def _program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def printed(self, scenario: Mapping[str, Any], verb: str, *words: str) -> str | None:
        """The script of the scenario; None: it is refused."""
        document = {"schema_version": 1, "scenarios": [scenario]}
        self._file.write_text(json.dumps(document))
        folder = ("--scenarios", str(self._file))
        status = main(["scenarios", verb, *folder, *words, "--", scenario["id"]])
        out, err = self._capsys.readouterr()
        if status == 0:
            return out
        assert status == 2, err
        return None

    def run_harmless(self, script: str | None) -> str:
        """Run it in an empty folder, with played programs: it ends well, and planted nothing."""
        assert script is not None
        played = self.folder / "played"
        played.mkdir(exist_ok=True)
        (played / "asked").unlink(missing_ok=True)
        done = subprocess.run(
            ["bash", "-s"],
            input=script.encode(),
            cwd=played,
            env={
                "PATH": f"{self.bin}:/usr/bin:/bin",
                "PLAYED": str(played),
                "MY_SWITCH": "1",
                "HOME": str(played),
                "PERFGATE_TENSORRT_LLM_SOURCE": str(played),
            },
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert not self.planted.exists(), f"it ran a command:\n{script}"
        assert done.returncode == 0, done.stderr.decode()
        return script


def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No site, no folders, no hosts of the machine that the tests run on."""
    for name in [name for name in os.environ if name.startswith(("PERFGATE_", "SLURM", "SBATCH"))]:
        monkeypatch.delenv(name)
