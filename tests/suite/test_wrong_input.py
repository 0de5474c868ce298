"""Wrong input of a session: told before any test, with the status for wrong usage or as a line."""

import subprocess
import sys
from pathlib import Path

import forked
import pytest
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited

ROOT = Path(__file__).parents[2]
ONE = ("-m", "b200", "-k", "b200-r1-fp4-fp16kv-max-throughput", "--rehearse")
WARNING = "perfgate: warning: PERFGATE_MODLES: perfgate has no such variable"


def session(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return forked.run(
        (sys.executable, "-m", "pytest", *BENCHMARK, *ONE, *words),
        cwd=ROOT,
        env={**inherited(), **ONLY_NEEDED_PLUGINS, **variables},
    )


@pytest.mark.parametrize(
    ("options", "site", "told"),
    [
        ((), "slurm: {partiton: x}", "site.yaml:2: slurm.partiton: unknown field"),
        ((), None, "PERFGATE_SITE: no such file"),
        (("--waivers", "missing.yaml"), "", "--waivers: no such file"),
        (("--engine-version", "zzz"), "", "not a version of TensorRT-LLM"),
    ],
    ids=["site", "no-site", "no-waivers", "no-release"],
)
def test_it_is_wrong_usage_before_a_run_begins(
    tmp_path: Path, options: tuple[str, ...], site: str | None, told: str
) -> None:
    file = tmp_path / "site.yaml"
    if site is not None:
        file.write_text(f"schema_version: 1\n{site}\n")
    done = session(*options, f"--run-dir={tmp_path / 'run'}", PERFGATE_SITE=str(file))
    assert done.returncode == 4, done.stdout + done.stderr
    assert told in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_warning_is_a_line_and_never_an_error() -> None:
    words = ("--collect-only", "-q", "-W", "error", "--engine-version", "99")
    done = session(*words, PERFGATE_MODLES="/models")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(WARNING) == 1
    assert done.stdout.count("no table of releases covers TensorRT-LLM 99") == 1


def test_a_session_of_other_tests_is_told_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("def test_other():\n    pass\n")
    words = (str(tmp_path), "-m", "not b200", "-k", "other")
    done = session(*words, PERFGATE_MODLES="/models")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PERFGATE_MODLES" not in done.stdout + done.stderr
