"""What a session prints and leaves: its header, a letter and a word for a verdict, JUnit XML."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from checkouts import pytest_in
from road_words import ROOT
from tables import each

from perfgate.suite.outputs import rewrite_junit, with_verdicts

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
    (folder / "conftest.py").write_text('pytest_plugins = ["perfgate.suite.plugin"]')
    (folder / "test_it.py").write_text(TESTS)
    return pytest_in(folder, *words, "test_it.py")


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
def test_a_session_counts_and_lists_verdicts(tmp_path: Path, workers: tuple[str, ...]) -> None:
    status, output = session(tmp_path, *workers, "-rfs")
    assert (status, COUNTS in output, ".RIEbcFs" in output) == (1, True, True), output
    failures, _, short = output.partition("short test summary info")
    for verdict in ("REGRESSION", "INCONCLUSIVE", "ERROR"):
        assert f"{verdict}: a table" in failures.partition("FAILURES")[2]
        assert f"{verdict} test_it.py::test_judged[{verdict}]" in short
    assert "measured, but NO_BASELINE" in short


def test_a_verbose_session_prints_words_and_one_of_regressions_is_red(tmp_path: Path) -> None:
    _, output = session(tmp_path, "-v")
    lines = [line.split("test_it.py::")[1] for line in output.splitlines() if "%]" in line]
    for line, words in zip(lines, ("PASSED", "REGRESSION"), strict=False):
        assert line.split("]")[1].startswith(f" {words} ")
    assert lines[4].startswith("test_not_judged[NO_BASELINE] NO BASELINE")
    _, output = session(tmp_path, "-k", "REGRESSION", "--color=yes")
    assert output.splitlines()[-1].startswith("\x1b[31m")


def test_a_session_of_the_suite_prints_what_it_measures_and_others_nothing(tmp_path: Path) -> None:
    words = ("--collect-only", "-m", "local", "-k", "smollm2-serve")
    _, output = pytest_in(ROOT, *words)
    expected = "perfgate: scenarios: 1; engine: llama.cpp; launcher: local; reference: self"
    assert f"{expected}\ngate repository: {ROOT}\n" in output
    _, quiet = pytest_in(ROOT, *words, "-q")
    _, others = session(tmp_path, "-k", "PASS")
    assert not [one for one in (quiet, others) if "gate repository" in one or "perfgate:" in one]


# Sessions that write JUnit XML with each verdict are in test_road.py.


@each("verdict", ["PASS", ""])
def test_what_has_no_element_of_a_verdict_is_left_as_pytest_wrote_it(verdict: str) -> None:
    """Also of a test that failed beside its verdict."""
    ours = f'<property name="verdict" value="{verdict}"/>' if verdict else ""
    text = (
        '<testsuites><testsuite failures="1" errors="0" skipped="0"><testcase name="a">'
        f'<properties>{ours}</properties><failure message="no test of ours">x</failure>'
        "</testcase></testsuite></testsuites>"
    )
    assert with_verdicts(text) == text


@each("name", ["junit.xml", "/dev/null"])
def test_a_file_that_cannot_be_read_back_ends_no_session(tmp_path: Path, name: str) -> None:
    (tmp_path / "junit.xml").write_text("<testsuites>")
    lines: list[str] = []
    config = SimpleNamespace(
        option=SimpleNamespace(xmlpath=name),
        invocation_params=SimpleNamespace(dir=tmp_path),
        get_terminal_writer=lambda: SimpleNamespace(line=lambda text, **_: lines.append(text)),
    )
    rewrite_junit(config)  # type: ignore[arg-type]
    assert ["is left as pytest wrote it" in line for line in lines] == [True] * (name[0] != "/")
