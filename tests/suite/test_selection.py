"""Which tests a session runs, and what goes to one worker: templates, markers, groups, crashes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from building import SCENARIO
from checkouts import pytest_in, says
from road_words import ROOT
from tables import each
from xdist.remote import Producer

from perfgate.campaign.selection import Selected, suite_tests
from perfgate.core.errors import InputError
from perfgate.judging.assembly.claims import claim_probes
from perfgate.scenarios.marker_expression import unknown_markers
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import Claim, Hardware, Scenario, Source
from perfgate.suite.selection import unrequested_templates
from perfgate.suite.workers import groups, scheduler_by_scenario

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
def test_a_template_must_be_requested(
    markexpr: str, more: dict[str, Any], templates: set[str]
) -> None:
    config: Any = SimpleNamespace(
        option=SimpleNamespace(markexpr=markexpr, keyword=more.get("keyword", "")),
        args=more.get("args", []),
        getoption=lambda name: more.get("shape", []),
    )
    items: list[Any] = [SimpleNamespace(nodeid="tests/test_other.py::test_it")]
    for probe in (load_probes(one)[0] for one in (B200, EXPLORED, OWN)):
        call = SimpleNamespace(params={"load_probe": probe})
        items.append(SimpleNamespace(nodeid=f"f.py::test[{probe.id}]", callspec=call))
    found = unrequested_templates(config, items)
    assert {one.id for one in found.values()} == {"b200-shapes", "b200-own"} - templates


def test_a_session_of_b200_measures_no_template() -> None:
    """Said by the main process too, where workers select."""
    words = ("-q", "perf_tests/test_offline_throughput.py", "-m")
    status, output = pytest_in(ROOT, *words, "b200", "--collect-only")
    assert (status, f"perfgate: {LEFT_OUT}" in output) == (0, True), output
    assert TEMPLATE not in output.replace(LEFT_OUT, "")
    status, output = pytest_in(ROOT, *words, "b200 and not nightly and not weekly", "-n", "1")
    says(output, LEFT_OUT, "no test of the suite was selected")
    assert status == 12


REGISTERED = ["slow: takes long", "skipif(condition, ..., *, reason=...): skip", "b200: needs B200"]
MEANT = "-m: no marker b20 is known; did you mean b200?"


def unreadable() -> dict[str, str]:
    raise InputError("wrong")


@each(
    ("expression", "declared", "told"),
    [
        ("", dict, []),
        ("b200 and not (slow or serving) or skipif", lambda: {"serving": "under load"}, []),
        ("b20 and", dict, []),
        ("b20", dict, [MEANT]),
        (
            "zzzzzz or servin",
            lambda: {"serving": "under load"},
            [
                "-m: no marker servin is known; did you mean serving?",
                "-m: no marker zzzzzz is known; `pytest --markers` lists those that are",
            ],
        ),
        ("b20", unreadable, []),  # told elsewhere
    ],
)
def test_unknown_markers_are_told(
    expression: str, declared: Callable[[], dict[str, str]], told: list[str]
) -> None:
    assert unknown_markers(expression, REGISTERED, declared) == told


@pytest.mark.slow
def test_an_unknown_marker_ends_a_strict_session_and_is_told_once(tmp_path: Path) -> None:
    words = ("-m", "b20", "--run-dir", str(tmp_path / "run"))
    status, output = pytest_in(ROOT, *words)
    assert status == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {MEANT}\n" in output
    assert "collected" not in output
    assert not (tmp_path / "run" / "records.jsonl").exists()
    lenient = ("-o", "addopts=-p no:cacheprovider -p no:dash", "-o", "strict_markers=false")
    _, told = pytest_in(ROOT, "-m", "b20", *lenient, "-n", "1")
    assert told.count(f"perfgate: {MEANT}") == 1
    assert "INTERNALERROR" not in output + told


@pytest.mark.slow
def test_pytest_explains_the_markers() -> None:
    _, output = pytest_in(ROOT, "--markers")
    says(
        output,
        "@pytest.mark.b200: needs B200 GPUs\n",
        "@pytest.mark.serving: a server under load\n",
    )


TWO, THREE = replace(SCENARIO, id="other-serve"), replace(SCENARIO, id="third-serve")


def claim(scenario: str, versus: str | None, name: str = "a-claim") -> Claim:
    source = Source("guide.md", "Claims")
    return Claim(name, "faster", source, "output_throughput", scenario, "better", versus=versus)


def all_tests(scenarios: list[Scenario], *claims: Claim) -> list[Selected]:
    return [one for one, _ in suite_tests(scenarios, claim_probes(claims, scenarios))]


def test_what_a_claim_compares_is_one_group_with_all_probes_of_its_scenarios() -> None:
    one = SCENARIO.id
    alone = groups(all_tests([SCENARIO, TWO]))
    assert alone["small-serve-c1"] == alone["small-serve-c4"] == alone["small-serve-sums"]
    assert alone["small-serve-c1"] != alone["other-serve-c1"]
    compared = groups(all_tests([SCENARIO, TWO, THREE], claim(one, TWO.id)))
    assert compared["small-serve-c1"] == compared["other-serve-c4"] == compared["a-claim"]
    assert compared["third-serve-c1"] != compared["a-claim"]
    linked = claim(one, TWO.id), claim(TWO.id, THREE.id, "another")
    assert len(set(groups(all_tests([SCENARIO, TWO, THREE], *linked)).values())) == 1
    of_a_number = groups(all_tests([SCENARIO, TWO], claim(TWO.id, None)))
    assert of_a_number["a-claim"] == of_a_number["other-serve-c1"]


class Worker:
    """A worker of pytest-xdist as its scheduler sees it, and as it works: one test after another.

    As the real one it begins a test only when it knows the next, or that there is none.
    """

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name, spec="popen")
        self.todo: list[int] = []
        self.shutting_down = False
        self.lives = True

    def send_runtest_some(self, indices: list[int]) -> None:
        self.todo += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    def run_one(self, scheduler: Any, done: list[int]) -> bool:
        """Run the next test, if the worker would begin one now."""
        begins = bool(self.todo) and self.lives and (len(self.todo) > 1 or self.shutting_down)
        if begins:
            done.append(self.todo.pop(0))
            scheduler.mark_test_complete(self, done[-1])
        return begins


SCENARIOS = [replace(SCENARIO, id=f"s{number}") for number in range(12)]
TESTS = [f"test.py::test[{one.id}-{label}]" for one in SCENARIOS for label in ("c1", "c4", "sums")]


@each("crash_after", range(1, len(TESTS), 3))
def test_after_a_crash_all_other_tests_run(crash_after: int, pytestconfig: pytest.Config) -> None:
    """pytest-xdist 3.8 by itself would wait for ever after some of these crashes."""
    config = SimpleNamespace(
        option=SimpleNamespace(loadscopereorder=True),
        hook=pytestconfig.hook,
        getoption=lambda name, *_: ["popen", "popen"] if name == "tx" else False,
        getvalue=lambda _: ["popen", "popen"],
    )
    scheduler = scheduler_by_scenario(config, Producer("test", enabled=False), all_tests(SCENARIOS))
    workers = [Worker("gw0"), Worker("gw1")]
    for one in workers:
        scheduler.add_node(one)
    for one in workers:
        scheduler.add_node_collection(one, TESTS)
    scheduler.schedule()
    done: list[int] = []
    while True:
        ran = [one.run_one(scheduler, done) for one in list(workers)]
        if workers[0].lives and len(done) >= crash_after:
            workers[0].lives = False
            crashed = scheduler.remove_node(workers[0])
            done += [TESTS.index(crashed)] if crashed else []  # told as failed by xdist itself
            workers.append(Worker("gw2"))
            scheduler.add_node(workers[-1])
            scheduler.add_node_collection(workers[-1], TESTS)
            scheduler.schedule()
        elif scheduler.tests_finished:
            for one in workers:
                one.shutdown()
            if not any(ran):
                break
        else:
            assert any(ran), "everybody waits for ever"
    assert sorted(set(done)) == list(range(len(TESTS)))
