"""Wrong input of a session: told before any test, with the status for wrong usage or as a line."""

from pathlib import Path

import forked
from checkouts import PLUGINS, ROOT
from sessions import ONLY_NEEDED_PLUGINS, inherited
from tables import each

ONE = ("-m", "b200", "-k", "b200-r1-fp4-fp16kv-max-throughput", "--rehearse")
WARNING = "perfgate: warning: PERFGATE_MODLES: perfgate has no such variable"


def session(*words: str, **variables: str) -> tuple[int, str]:
    environment = {**inherited(), **ONLY_NEEDED_PLUGINS, **variables}
    return forked.session([*PLUGINS, *ONE, *words], ROOT, environment)


@each(
    ("options", "site", "told"),
    [
        ((), "slurm: {partiton: x}", "site.yaml:2: slurm.partiton: unknown field"),
        ((), None, "PERFGATE_SITE: no such file"),
        (("--waivers", "missing.yaml"), "", "--waivers: no such file"),
        (("--engine-version", "zzz"), "", "not a version of TensorRT-LLM"),
        (("--shard", "4/3"), "", "no shard: '4/3'"),
    ],
)
def test_it_is_wrong_usage_before_a_run_begins(
    tmp_path: Path, options: tuple[str, ...], site: str | None, told: str
) -> None:
    file = tmp_path / "site.yaml"
    if site is not None:
        file.write_text(f"schema_version: 1\n{site}\n")
    status, output = session(*options, f"--run-dir={tmp_path / 'run'}", PERFGATE_SITE=str(file))
    assert status == 4, output
    assert told in output
    assert not (tmp_path / "run").exists()


def test_a_warning_is_a_line_and_never_an_error() -> None:
    words = ("--collect-only", "-q", "-W", "error", "--engine-version", "99")
    status, output = session(*words, PERFGATE_MODLES="/models")
    assert status == 0, output
    assert output.count(WARNING) == 1
    assert output.count("no table of releases covers TensorRT-LLM 99") == 1
