"""States that a transcript is given: a function each, its words as texts."""

import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from building import MACHINE, baseline, entry, machine, of_commit, outcome, with_answers
from made_runs import SHARDS, write_run
from made_runs import run as made_run
from plain_records import fields_of, record
from sides_made import measurement, throughputs
from sides_made import run as side

from perfgate.baselines import candidate_store, own_store, suite_store
from perfgate.clients.base import client
from perfgate.core.environment_variables import variables_set
from perfgate.core.verdict import Verdict
from perfgate.engines.base import EngineBuild, engine
from perfgate.engines.build_source import BuildSource
from perfgate.evaluators.base import evaluator
from perfgate.machine.preflight import Check, PreflightReport, PreflightTarget
from perfgate.runs.run_folder import RunFolder


@dataclass(frozen=True)
class World:
    """Where the states are made.

    Args:
        folder: the test's own; the checkout is in it.
        patch: what is undone after the test.
        text: the lines below the state.
    """

    folder: Path
    patch: pytest.MonkeyPatch
    text: str


GIVEN: dict[str, Callable[..., object]] = {}


def given(state: Callable[..., object]) -> Callable[..., object]:
    """The state of that name, with - for _."""
    GIVEN[state.__name__.replace("_", "-")] = state
    return state


@given
def file(world: World, name: str) -> None:
    """A file with the text."""
    path = world.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(world.text)


@given
def changed(world: World, name: str, old: str) -> None:
    """The text in a file of the test, for some that is there."""
    path = world.folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, world.text.rstrip("\n")))


@given
def moved(world: World, name: str, to: str) -> None:
    (world.folder / to).parent.mkdir(parents=True, exist_ok=True)
    (world.folder / name).rename(world.folder / to)


@given
def recorded(world: World, name: str, to: str) -> None:
    """A file of tests/data under another name, below the text."""
    recorded = (Path(__file__).parents[1] / "data" / name).read_text()
    file(replace(world, text=world.text + recorded), to)


@given
def odd_files(world: World) -> None:
    """A FIFO, a link to a device without end, and every byte."""
    os.mkfifo(world.folder / "fifo")
    (world.folder / "link").symlink_to("/dev/zero")
    (world.folder / "bytes").write_bytes(bytes(range(256)))


# Baselines


@given
def stores(world: World) -> None:
    """One baseline in each store."""
    entries = {"c1": entry(100.0, 101.0), "c4": entry(9.0)}
    made = baseline(entries=entries, change="first", verdicts={"c1": "NO_BASELINE"})
    suite_store().save(made)
    candidate_store().save(of_commit("next", entries={"c1": entry(120.0)}))
    own_store().save(of_commit("mine", accepted_by="self"))


@given
def of_an_image(world: World) -> None:
    """A baseline of a build in an image."""
    image = BuildSource("registry.example/trtllm:1.2.0", "sha256:0123")
    suite_store().save(of_commit("image", source=image))


@given
def candidate_with_answers(world: World) -> None:
    entries = {"sums": with_answers({"q1": True, "q2": False})}
    candidate_store().save(baseline(accepted_by="nobody yet", entries=entries))


@given
def lower_candidate(world: World) -> None:
    lower = {"entries": {"c1": entry(80.0)}, "verdicts": {"c1": "REGRESSION"}}
    candidate_store().save(of_commit("worse", **lower))


@given
def two_commits(world: World) -> None:
    first = {"c1": entry(100.0), "c4": entry(9.0)}
    second = {"c1": entry(90.0), "c4": entry(9.0, cpu="Xeon")}
    suite_store().save(of_commit("aaaaaaa", entries=first))
    suite_store().save(of_commit("bbbbbbb", entries=second))


@given
def another_scenario(world: World, commit: str) -> None:
    suite_store().save(of_commit(commit, scenario="other"))


@given
def three_versions(world: World) -> None:
    for version, value in (("1.0.0", 100.0), ("1.1.0rc1", 99.0), ("1.1.0rc2", 98.0)):
        build = EngineBuild("llama.cpp", version, f"c{version}")
        suite_store().save(baseline(engine=build, entries={"c1": entry(value)}))


@given
def session(world: World, name: str, day: str, verdict: str) -> None:
    """A run of two scenarios, of which the second came to no verdict."""
    folder = RunFolder.create(world.folder / name, {"synthetic": False})
    ends = (("small-serve", "c1", verdict), ("noisy-serve", "c4", Verdict.INCONCLUSIVE))
    for scenario, probe, end in ends:
        told = {"probe": probe, "scenario": scenario, "fingerprint": {"cpu": "Grace"}}
        told |= {"started": f"{day}T08:00:00+00:00", "disturbed": [], "seconds": 20.5}
        folder.record(record("measurement", measurement({"output_throughput": 110.0}, **told)))
        named = {"test": probe, "name": f"{scenario}-{probe}", "scenario": scenario, "probe": probe}
        made = outcome(verdict=Verdict(end), judgements=())
        folder.record(record("verdict", {**fields_of(made), **named}))
    folder.close()


# Runs


@given
def starts(world: World, name: str, values: str, *changes: str) -> None:
    """A run with these throughputs; changes: facts of its machine, its scenario, synthetic."""
    facts = {"content": "0123456789abcdef", "cpu": "Grace", "driver": "570.1"}
    more: dict[str, Any] = {}
    for key, _, value in (change.partition("=") for change in changes):
        if key in facts:
            facts[key] = value
        else:
            more[key] = value or True
    speeds = map(float, values.split(","))
    throughputs(world.folder / name, *speeds, fingerprint=facts, **more)


@given
def sides(world: World) -> None:
    """Two runs of which each has a metric of its own: a judged loss, and a reported one."""
    old = {"output_throughput": 100.0, "ttft_p99_ms": 50.0, "e2el_mean_ms": 5.0}
    new = {"output_throughput": 95.0, "ttft_p99_ms": 90.0, "duration_s": 7.0}
    side(world.folder / "one", [measurement(old)])
    side(world.folder / "two", [measurement(new, start) for start in (1, 2)])


@given
def failed_start(world: World, name: str) -> None:
    side(world.folder / name, [], failed=["c1"])


@given
def ended_run(world: World, name: str, shard: str, status: str, *tests: str) -> None:
    """A run folder: TEST=VERDICT for each test; of no shard if its number is 0."""
    results = {test: verdict for test, _, verdict in (one.partition("=") for one in tests)}
    made = made_run(
        name,
        "10:00",
        {test: Verdict(one) if one in [*Verdict] else one for test, one in results.items()},
        shard=SHARDS[int(shard) - 1] if int(shard) else None,
        end=None if status == "none" else int(status),
        faults=[world.text] if world.text else [],
    )
    write_run(world.folder / name, made)


# Machines

_CHECKS = {
    "gpus": Check("gpus", "ok", "8×NVIDIA B200: 0, 1", "8×B200"),
    "persistence": Check(
        "gpu persistence", "warning", "GPU 1: off", "persistence mode on", "-pm 1 as root"
    ),
    "hosts": Check("hosts", "unknown", "checked only with --reach"),
    "sick": Check("gpu errors", "failed", "GPU 0: 1 uncorrected", "none", "reset the GPU"),
    "no-aiperf": Check("clients", "failed", "no aiperf", "", "install it"),
    "no-aiperf-nor-hint": Check("clients", "failed", "no aiperf", ""),
    "no-lm_eval": Check("evaluators", "failed", "no lm_eval", "", "pip install it"),
    "unasked": Check("model", "unknown", "from the hub"),
}


@given
def gpus(world: World, *names: str) -> None:
    """A machine with these GPUs, every program, and no variables of whoever runs the tests."""
    world.patch.setattr("perfgate.cli.doctor.detect", lambda: machine(*names))
    world.patch.setattr("perfgate.cli.doctor.variables_set", lambda environment: {})
    programs(world)


@given
def programs(world: World, *checks: str) -> None:
    """What a look at the programs finds."""
    found = tuple(_CHECKS[one] for one in checks)
    world.patch.setattr("perfgate.cli.doctor.judge_software", lambda tools: found)


@given
def preflight(world: World, *checks: str) -> None:
    """What the preflight finds, and what it was asked."""
    found = tuple(_CHECKS[one] for one in checks)
    usual = asdict(PreflightTarget())

    def look(scenario: Any, tools: Any, here: Any, where: Any) -> PreflightReport:
        assert (tools.scenario, here) == (scenario, MACHINE)
        told = {key: str(one) for key, one in asdict(where).items() if one != usual[key]}
        asked = Check("asked", "ok", str(told), "anything")
        return PreflightReport((*found, asked), {"driver": "580.65.06"})

    world.patch.setattr("perfgate.cli.doctor_selection.look", look)


@given
def variable(world: World, name: str, value: str) -> None:
    """One of perfgate's variables is set, and no other."""
    one = variables_set({name: value})
    world.patch.setattr("perfgate.cli.doctor.variables_set", lambda environment: one)


@given
def shared_python(world: World) -> None:
    world.patch.setattr("perfgate.cli.doctor.shared_python", lambda: "shared with vllm 1")


@given
def standin_engine(world: World) -> None:
    """Its module can be imported, and is not yet."""
    world.patch.syspath_prepend(Path(__file__).parents[1] / "standins")
    for registry in (engine, client, evaluator):
        world.patch.setattr(registry, "_classes", dict(registry))  # all of them, loaded
    world.patch.delitem(sys.modules, "standin", raising=False)
