"""Templates are measured only when a session asks for them; else it is told how to."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import forked
import pytest
from building import SCENARIO
from checkouts import PLUGINS, ROOT
from sessions import ONLY_NEEDED_PLUGINS, inherited
from tables import each

from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import Hardware
from perfgate.suite.selection import unrequested_templates

FILE = "perf_tests/test_offline_throughput.py"
TEMPLATE = "b200-r1-fp4-explore"
LEFT_OUT = f"1 template left out ({TEMPLATE}): ask with -m explore --shape ISL/OSL"

B200 = replace(SCENARIO, id="b200-one", hardware=Hardware("B200", 8), markers=("serving",))
EXPLORED = replace(B200, id="b200-shapes", markers=("explore",))
OWN = replace(B200, id="b200-own", markers=("opt_in",))


@each(
    ("markexpr", "more", "templates"),
    [
        ("", {}, set()),
        ("b200 and serving", {}, set()),
        ("b200 and (", {}, set()),  # pytest itself refuses it
        ("not local", {"keyword": "b200"}, set()),
        ("", {"args": ["f.py::test[b200-one-c1]"]}, set()),
        ("b200 and explore", {}, {"b200-shapes"}),
        ("explore or opt_in", {}, {"b200-shapes", "b200-own"}),
        ("", {"shape": ["128/128"]}, {"b200-shapes"}),
        ("", {"keyword": "explore"}, {"b200-shapes"}),
        ("", {"keyword": "(b200-shapes or b200-one)"}, {"b200-shapes"}),
        ("", {"args": ["-q", "f.py::test[b200-shapes-c1]"]}, {"b200-shapes"}),
    ],
)
def test_a_template_is_asked_for_by_marker_shape_name_or_test(
    markexpr: str, more: dict[str, Any], templates: set[str]
) -> None:
    config: Any = SimpleNamespace(
        option=SimpleNamespace(markexpr=markexpr, keyword=more.get("keyword", "")),
        args=more.get("args", []),
        getoption=lambda name: more.get("shape", []),
    )
    items: list[Any] = [SimpleNamespace(nodeid="tests/test_other.py::test_it")]
    for one in (B200, EXPLORED, OWN):
        probe = load_probes(one)[0]
        call = SimpleNamespace(params={"load_probe": probe})
        items.append(SimpleNamespace(nodeid=f"f.py::test[{probe.id}]", callspec=call))
    found = unrequested_templates(config, items)
    assert {one.id for one in found.values()} == {"b200-shapes", "b200-own"} - templates


def run(*words: str) -> tuple[int, str]:
    environment = {**inherited("PERFGATE_"), **ONLY_NEEDED_PLUGINS}
    return forked.session([*PLUGINS, "-q", *words], ROOT, environment)


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
def test_a_session_of_b200_measures_no_template(workers: tuple[str, ...]) -> None:
    status, output = run(FILE, "-m", "b200", "--collect-only", *workers)
    assert status == 0, output
    assert f"perfgate: {LEFT_OUT}" in output
    assert TEMPLATE not in output.replace(LEFT_OUT, "")


def test_a_session_of_nothing_but_templates_measured_nothing() -> None:
    status, output = run(FILE, "-m", "b200 and not nightly and not weekly")
    assert status == 12
    assert LEFT_OUT in output
    assert "no test of the suite was selected" in output
