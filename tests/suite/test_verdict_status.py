"""What a session prints: its header, and a letter and a word for each verdict that is no pass."""

from pathlib import Path

import forked
import pytest
from checkouts import ROOT
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, XDIST, inherited

CONFTEST = 'pytest_plugins = ["perfgate.suite.plugin"]'
TESTS = """
import pytest

@pytest.mark.parametrize("verdict", ["PASS", "REGRESSION", "INCONCLUSIVE", "ERROR"])
def test_judged(verdict, request):
    request.node.user_properties.append(("verdict", verdict))
    if verdict != "PASS":
        pytest.fail(f"{verdict}: a table", pytrace=False)

@pytest.mark.parametrize("verdict", ["NO_BASELINE", "NOT_COMPARABLE"])
def test_not_judged(verdict, request):
    request.node.user_properties.append(("verdict", verdict))
    pytest.skip(f"measured, but {verdict}")

def test_that_fails_beside_its_verdict(request):
    request.node.user_properties.append(("verdict", "NO_BASELINE"))
    assert not request

def test_without_a_verdict():
    pytest.skip("no GPU")
"""
COUNTS = (
    "1 failed, 1 passed, 1 skipped, 1 error, 1 regression, 1 inconclusive, "
    "1 no baseline, 1 not comparable"
)


def session(folder: Path, *words: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(TESTS)
    environment = {**inherited("PERFGATE_"), **ONLY_NEEDED_PLUGINS}
    return forked.session((*BENCHMARK, *words, "test_it.py"), folder, environment)


@pytest.mark.parametrize("workers", [(), (*XDIST, "-n", "1")], ids=["alone", "workers"])
def test_a_session_counts_verdicts_apart_and_lists_them_as_failed_or_skipped(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    status, output = session(tmp_path, *workers, "-rfs")
    assert status == 1
    assert COUNTS in output
    assert ".RIEbcFs" in output
    failures, _, short = output.partition("short test summary info")
    for verdict in ("REGRESSION", "INCONCLUSIVE", "ERROR"):
        assert f"{verdict}: a table" in failures.partition("FAILURES")[2]
        assert f"{verdict} test_it.py::test_judged[{verdict}]" in short
    assert "measured, but NO_BASELINE" in short


def test_a_verbose_session_prints_the_words(tmp_path: Path) -> None:
    _, output = session(tmp_path, "-v")
    lines = [line.split("test_it.py::")[1] for line in output.splitlines() if "%]" in line]
    assert [line.rsplit(maxsplit=2)[0] for line in lines[:2]] == [
        "test_judged[PASS] PASSED",
        "test_judged[REGRESSION] REGRESSION",
    ]
    assert lines[4].startswith("test_not_judged[NO_BASELINE] NO BASELINE")


def test_a_session_of_regressions_alone_ends_in_red(tmp_path: Path) -> None:
    _, output = session(tmp_path, "-k", "REGRESSION", "--color=yes")
    assert output.splitlines()[-1].startswith("\x1b[31m")


def test_a_session_of_the_suite_prints_what_it_measures_and_one_of_other_tests_nothing(
    tmp_path: Path,
) -> None:
    environment = {**inherited("PERFGATE_"), **ONLY_NEEDED_PLUGINS}
    words = (*BENCHMARK, "--collect-only", "-m", "local", "-k", "smollm2-serve")
    _, output = forked.session(words, ROOT, environment)
    expected = "perfgate: scenarios: 1; engine: llama.cpp; launcher: local; reference: self"
    assert f"{expected}\ngate repository: {ROOT}\n" in output
    _, quiet = forked.session((*words, "-q"), ROOT, environment)
    _, others = session(tmp_path, "-k", "PASS")
    assert not [one for one in (quiet, others) if "gate repository" in one or "perfgate:" in one]
