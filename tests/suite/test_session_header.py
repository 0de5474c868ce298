"""A session of the suite prints what it measures; a session of other tests prints nothing more."""

from pathlib import Path

import forked
from checkouts import ROOT
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited

ENVIRONMENT = {**inherited("PERFGATE_"), **ONLY_NEEDED_PLUGINS}


def test_a_session_of_the_suite_prints_what_it_measures() -> None:
    words = (*BENCHMARK, "--collect-only", "-m", "local", "-k", "smollm2-serve")
    _, output = forked.session(words, ROOT, ENVIRONMENT)
    expected = "perfgate: scenarios: 1; engine: llama.cpp; launcher: local; reference: self"
    assert f"{expected}\ngate repository: {ROOT}\n" in output
    _, quiet = forked.session((*words, "-q"), ROOT, ENVIRONMENT)
    assert "gate repository" not in quiet


def test_a_session_of_other_tests_prints_nothing(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["perfgate.suite.plugin"]')
    (tmp_path / "test_it.py").write_text("def test_it(): pass")
    status, output = forked.session((*BENCHMARK, "test_it.py"), tmp_path, ENVIRONMENT)
    assert status == 0
    assert "perfgate:" not in output
    assert "gate repository" not in output
