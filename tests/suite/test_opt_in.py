"""Templates are measured only when a session asks for them; else it is told how to."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import forked
import pytest
from building import SCENARIO
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, XDIST, inherited

from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import Hardware
from perfgate.suite.opt_in import OptIn

ROOT = Path(__file__).parents[2]
FILE = "perf_tests/test_offline_throughput.py"
TEMPLATE = "b200-r1-fp4-explore"
LEFT_OUT = f"1 template left out ({TEMPLATE}): ask with -m explore --shape ISL/OSL"

B200 = replace(SCENARIO, id="b200-one", hardware=Hardware("B200", 8), markers=("serving",))
EXPLORED = replace(B200, id="b200-shapes", markers=("explore",))
OWN = replace(B200, id="b200-own", markers=("opt_in",))


class Session:
    """A session as far as `OptIn` looks at it, with a test of each scenario."""

    def __init__(
        self, markexpr: str = "", keyword: str = "", shape: tuple[str, ...] = (), args: str = ""
    ) -> None:
        self.option = SimpleNamespace(markexpr=markexpr, keyword=keyword)
        self.args = args.split()
        self.dropped: list[Any] = []
        self.hook = SimpleNamespace(pytest_deselected=lambda items: self.dropped.extend(items))
        self._shape = list(shape)

    def getoption(self, name: str) -> list[str]:
        assert name == "--shape"
        return self._shape

    def kept(self) -> set[str]:
        """The scenarios whose tests are left."""
        config: Any = self
        self.opt_in = OptIn(config)
        items: list[Any] = [SimpleNamespace(nodeid="tests/test_other.py::test_it")]
        for one in (B200, EXPLORED, OWN):
            probe = load_probes(one)[0]
            call = SimpleNamespace(params={"load_probe": probe})
            items.append(SimpleNamespace(nodeid=f"f.py::test[{probe.id}]", callspec=call))
        self.opt_in.pytest_collection_modifyitems(items)
        assert items[0].nodeid == "tests/test_other.py::test_it"
        return {item.callspec.params["load_probe"].scenario.id for item in items[1:]}

    def said(self) -> list[str]:
        """What the end of the session says, after `kept`."""
        lines: list[str] = []
        reporter: Any = SimpleNamespace(write_line=lines.append)
        self.opt_in.pytest_terminal_summary(reporter)
        return lines


@pytest.mark.parametrize(
    ("session", "templates"),
    [
        (Session(), set()),
        (Session("b200"), set()),
        (Session("b200 and serving"), set()),
        (Session("not local", keyword="b200"), set()),
        (Session(args="perf_tests/test_serving.py::test_serving"), set()),
        (Session(args="f.py::test[b200-one-c1]"), set()),
        (Session("b200 and explore"), {"b200-shapes"}),
        (Session("explore or opt_in"), {"b200-shapes", "b200-own"}),
        (Session("b200 or opt_in"), {"b200-own"}),
        (Session(shape=("128/128",)), {"b200-shapes"}),
        (Session(keyword="explore"), {"b200-shapes"}),
        (Session(keyword="(b200-shapes or b200-one)"), {"b200-shapes"}),
        (Session(args="-q f.py::test[b200-shapes-c1]"), {"b200-shapes"}),
        (Session("b200 and ("), set()),  # pytest itself refuses it
    ],
)
def test_a_template_is_asked_for_by_marker_shape_name_or_test(
    session: Session, templates: set[str]
) -> None:
    assert session.kept() == {"b200-one"} | templates
    assert len(session.dropped) == 2 - len(templates)
    assert len(session.said()) == 2 - len(templates)


def test_what_was_left_out_is_told_with_how_to_ask() -> None:
    session = Session("b200")
    session.kept()
    assert session.said() == [
        "perfgate: 1 template left out (b200-shapes): ask with -m explore --shape ISL/OSL",
        "perfgate: 1 template left out (b200-own): ask with -m opt_in",
    ]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return forked.run(
        [sys.executable, "-m", "pytest", *BENCHMARK, *XDIST, "-q", *words],
        cwd=ROOT,
        env={**inherited("PERFGATE_"), **ONLY_NEEDED_PLUGINS},
    )


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
def test_a_session_of_b200_measures_no_template(workers: tuple[str, ...]) -> None:
    done = run(FILE, "-m", "b200", "--collect-only", *workers)
    assert done.returncode == 0
    assert f"perfgate: {LEFT_OUT}" in done.stdout
    assert TEMPLATE not in done.stdout.replace(LEFT_OUT, "")


def test_a_session_that_names_the_test_gets_it() -> None:
    name = f"{FILE}::test_offline_throughput[{TEMPLATE}-c3072]"
    done = run(name, "--collect-only")
    assert name in done.stdout
    assert "left out" not in done.stdout


def test_a_session_of_nothing_but_templates_measured_nothing() -> None:
    """As ever: status 12, with what was left out beside it."""
    done = run(FILE, "-m", "b200 and not nightly and not weekly")
    assert done.returncode == 12
    assert LEFT_OUT in done.stdout
    assert "no test of the suite was selected" in done.stdout
