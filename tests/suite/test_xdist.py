"""Workers: what must be measured together goes to one worker."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import building
import pytest
from tables import each
from xdist.remote import Producer

from perfgate.scenarios.scenario import Claim, Source
from perfgate.suite.workers import groups, scheduler_by_scenario

ONE = building.SCENARIO
TWO = replace(ONE, id="other-serve")
THREE = replace(ONE, id="third-serve")


def claim(scenario: str, versus: str | None, name: str = "a-claim") -> Claim:
    source = Source("guide.md", "Claims")
    return Claim(name, "faster", source, "output_throughput", scenario, "better", versus=versus)


def test_what_a_claim_compares_is_one_group_with_all_probes_of_its_scenarios() -> None:
    alone = groups([ONE, TWO])
    assert alone["small-serve-c1"] == alone["small-serve-c4"] == alone["small-serve-sums"]
    assert alone["small-serve-c1"] != alone["other-serve-c1"]
    compared = groups([ONE, TWO, THREE], [claim(ONE.id, TWO.id)])
    assert compared["small-serve-c1"] == compared["other-serve-c4"] == compared["a-claim"]
    assert compared["third-serve-c1"] != compared["a-claim"]
    linked = [claim(ONE.id, TWO.id), claim(TWO.id, THREE.id, "another")]
    assert len(set(groups([ONE, TWO, THREE], linked).values())) == 1
    of_a_number = groups([ONE, TWO], [claim(TWO.id, None)])
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

    def next_test(self) -> int | None:
        may_begin = self.lives and (len(self.todo) > 1 or self.shutting_down)
        return self.todo.pop(0) if self.todo and may_begin else None


SCENARIOS = [replace(ONE, id=f"s{number}") for number in range(12)]
TESTS = [f"test.py::test[{one.id}-{label}]" for one in SCENARIOS for label in ("c1", "c4", "sums")]


@each("crash_after", range(1, len(TESTS), 3))
def test_after_a_crash_every_other_test_is_still_run(
    crash_after: int, pytestconfig: pytest.Config
) -> None:
    """pytest-xdist 3.8 by itself would wait for ever after some of these crashes."""
    config = SimpleNamespace(
        option=SimpleNamespace(loadscopereorder=True),
        hook=pytestconfig.hook,
        getoption=lambda name, *_: ["popen", "popen"] if name == "tx" else False,
        getvalue=lambda _: ["popen", "popen"],
    )
    log = Producer("test", enabled=False)
    scheduler = scheduler_by_scenario(config, log, SCENARIOS)
    workers = [Worker("gw0"), Worker("gw1")]
    for one in workers:
        scheduler.add_node(one)
    for one in workers:
        scheduler.add_node_collection(one, TESTS)
    scheduler.schedule()
    done: list[int] = []
    while True:
        ran = [run_one(one, scheduler, done) for one in list(workers)]
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


def run_one(worker: Worker, scheduler: Any, done: list[int]) -> bool:
    """Let a worker run its next test, if it would begin one now."""
    test = worker.next_test()
    if test is None:
        return False
    done.append(test)
    scheduler.mark_test_complete(worker, test)
    return True
