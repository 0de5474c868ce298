"""Wrong input of a session: told before any test, with the status for wrong usage or as a line."""

import forked
import pytest
from checkouts import PLUGINS, ROOT, Suite
from sessions import ONLY_NEEDED_PLUGINS, inherited
from tables import each

WARNING = "perfgate: warning: PERFGATE_MODLES: perfgate has no such variable"
WRONG = ("--inject", "engine.settings.cpu_thread=1")


@pytest.mark.slow
@each(
    ("options", "told"),
    [
        (WRONG, "no such setting"),
        ((*WRONG, "-n", "1"), "no such setting"),
        (("--inject", "nonsense"), "KEY=VALUE"),
        (("--launcher", "slrum"), "unknown launcher"),
        (("--engine-repo", "perf_tests"), "perf_tests: not a git clone"),
        (("--budget", "tomorrow"), "--budget: not a duration"),
        (("--record", "--rehearse-fault=oom"), "found: --rehearse-fault beside it"),
        (("--waivers", "missing.yaml"), "--waivers: no such file"),
        (("--shard", "4/3"), "no shard: '4/3'"),
        (("-m", "standin", "--shard", "2/2"), "the shard is empty"),
        (("-m", "standin", "--shard", "2/2", "-n", "1"), "the shard is empty"),
        (("PERFGATE_SITE=site",), "PERFGATE_SITE: no such file"),
        (("PERFGATE_SITE=pyproject.toml",), "pyproject.toml:2: broken YAML"),
        (("isl: 16", "isl: sixteen"), "standin.yaml:13"),
    ],
)
def test_it_is_wrong_usage_before_a_run_begins(
    suite: Suite, options: tuple[str, ...], told: str
) -> None:
    variables = dict(one.split("=") for one in options if one.startswith("PERFGATE_"))
    if told.startswith("standin.yaml"):
        suite.edit(options)  # the last row, as it spoils the checkout
    words = [one for one in options if "PERFGATE_" not in one and "isl" not in one]
    done = suite.run(*words, **variables)
    assert done.status == 4, done.output
    assert done.output.count(told) == 1, done.output
    assert "INTERNALERROR" not in done.output
    assert suite.starts == 0
    assert not (done.folder / "records.jsonl").exists()


def test_a_warning_is_a_line_and_never_an_error_and_what_is_no_release_is_wrong_usage() -> None:
    words = ["-m", "b200", "-k", "b200-r1-fp4-fp16kv-max-throughput", "--rehearse"]
    words += ["--collect-only", "-q", "-W", "error", "--engine-version"]
    environment = {**inherited(), **ONLY_NEEDED_PLUGINS, "PERFGATE_MODLES": "/models"}
    status, output = forked.session([*PLUGINS, *words, "99"], ROOT, environment)
    assert status == 0, output
    assert output.count(WARNING) == 1
    assert output.count("no table of releases covers TensorRT-LLM 99") == 1
    status, output = forked.session([*PLUGINS, *words, "zzz"], ROOT, environment)
    assert (status, "not a version of TensorRT-LLM" in output) == (4, True), output
