"""Starts that are played by a script; campaign, gate and records are the real ones."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import building
import pytest

from perfgate import baselines
from perfgate.baselines import BaselineRun, Entry
from perfgate.campaign import starter
from perfgate.campaign.fresh_start import StartSetup
from perfgate.core.measurement import Measurement
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Claim, GatePolicy, Scenario, Source

SPEED = "output_throughput"
NEW = EngineBuild("llama.cpp", "1.3.0", "def456")
OLD = EngineBuild("llama.cpp", "1.2.0", "abc123")
GUIDE = Source("guide.md", "Engines")
CLAIM = Claim("one-is-faster", "The first is faster", GUIDE, SPEED, "one", "better", versus="two")
# What a probe gives on the starts of one role, in order; the last one for all that follow.
Script = Mapping[str, Sequence[float | Exception]]


def scenario_of(points: tuple[int, ...], *, band: float, **gate: Any) -> Scenario:
    """The small scenario, gated by its speed at those concurrencies."""
    workload = replace(building.SCENARIO.workload, concurrency=points)  # type: ignore[type-var]
    policy = GatePolicy((SPEED,), bands={SPEED: band}, **gate)
    return replace(building.SCENARIO, workload=workload, accuracy=(), gate=policy)


def tools_of(build: EngineBuild, scenario: Scenario, **facts: str) -> Any:
    """The toolchain of a build that is not here."""
    return SimpleNamespace(
        scenario=scenario,
        build=build,
        is_offline=lambda probe: False,
        missing_for=lambda probe: None,
        fingerprint=lambda probe, machine: {"content": "a", **facts},
        named_program=lambda probe: facts.get("client", ""),
        engine=SimpleNamespace(programs=()),
        locations=Locations(),
    )


def store_baseline(engine: EngineBuild, facts, values, **changes: Any) -> Path:
    """An accepted baseline of those speeds; each start is of a session of its own."""

    def run(day: int, value: float) -> BaselineRun:
        started = f"2026-11-{day:02}T08:00:00+00:00"
        return BaselineRun(f"run-{engine.version}-{day}", started, {SPEED: value}, start=1)

    entries = {
        probe.label: Entry(facts, tuple(map(run, count(1), given)))
        for probe, given in values.items()
    }
    scenario = next(iter(values)).scenario.id
    kept = building.baseline(scenario=scenario, engine=engine, entries=entries, **changes)
    return baselines.suite_store().save(kept)


@dataclass
class Played:
    """The starts of campaigns that play their engines.

    Attributes:
        script: probe label, or scenario → role → values, in order of the starts; `*` is any, and
            `start` what a start itself gives. A negative value was disturbed.
        starts: the roles of the starts, in order.
        scenarios: whose they were.
        loaded: what was loaded on each of them.
    """

    script: Mapping[str, Script]
    starts: list[str] = field(default_factory=list)
    scenarios: list[str] = field(default_factory=list)
    loaded: list[list[str]] = field(default_factory=list)

    @property
    def order(self) -> str:
        """The starts in order, a letter each: n(ew), c(ontrol), the anch(o)r's, a, b, t(urn)."""
        letters = {"baseline_control": "c", "anchor_control": "o", "claim": "t"}
        return "".join(letters.get(role, role[0]) for role in self.starts)

    def take_part(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every start of a campaign is played from now on."""
        monkeypatch.setattr(starter, "fresh_start", self._fresh_start)
        monkeypatch.setattr(starter, "measure_guarded", self._measure)
        monkeypatch.setattr(starter, "watch_start", lambda *_: nullcontext())

    @contextmanager
    def _fresh_start(self, setup: StartSetup, probes: Sequence[Probe]) -> Iterator[Any]:
        self.starts.append(setup.account.role)
        self.scenarios.append(setup.build.scenario.id)
        self.loaded.append([])
        if isinstance(given := self._given(("start",), setup.account.role), Exception):
            raise given
        yield SimpleNamespace(setup=setup, has_ended=False, beside=None)

    def _measure(self, start: Any, probe: Probe) -> Measurement:
        self.loaded[-1].append(probe.label)
        given = self._given((probe.label, probe.scenario.id, "*"), self.starts[-1])
        if isinstance(given, Exception):
            raise given
        disturbed = ("a neighbour",) if given < 0 else ()
        facts = {"docker": {"image": f"registry/engine:{start.setup.build.tools.build.version}"}}
        return Measurement({SPEED: abs(given)}, facts, disturbed=disturbed)

    def _given(self, names: Sequence[str], role: str) -> float | Exception:
        nothing: Script = {}
        script = next((self.script[name] for name in names if name in self.script), nothing)
        values = script.get(role, [100.0])
        made = zip(self.starts, self.scenarios, strict=True)
        number = sum(one == (role, self.scenarios[-1]) for one in made)
        return values[min(number, len(values)) - 1]
