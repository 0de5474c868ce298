"""A suite in a git repository, and an engine that it measures: all of it real but the speed."""

from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from engine_clone import Clone
from plain_records import record
from plain_values import judge_performance
from test_recording import measure

from perfgate.baselines import Baseline, ChosenBaseline, Entry, read, suite_store
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.recording import record_candidates
from perfgate.core.verdict import Judgement, Verdict, worst
from perfgate.engines.base import EngineBuild
from perfgate.judging.acceptance.promotion import Promotion, promote
from perfgate.judging.rules.scale import anchor_band
from perfgate.runs.run_folder import RunFolder

ROOT = Path(__file__).parents[2]
SCENARIO = "h200-demo-serve"
HARDWARE = "8xH200"
METRIC = "output_throughput"
BAND = 0.02
FACTS = {"content": "5d41402abc4b2a76", "cpu": "Grace", "gpus": "H200", "driver": "570.1"}
# What fresh starts of one build differ by: the family's prior is 0.5 %.
_SPREAD = (1.0, 1.004, 0.996, 1.002, 0.998)
_DAYS = count(1)


@dataclass
class Measured:
    """A run of the suite, and what it compared with."""

    folder: Path
    nearest: ChosenBaseline | None
    judgements: tuple[Judgement, ...]

    @property
    def level(self) -> list[str]:
        """The versions that it was compared with, the nearest first."""
        assert self.nearest is not None
        return [one.engine.version for one in self.nearest.window]

    def verdict(self, against: str) -> Verdict:
        (one,) = [one for one in self.judgements if one.against == against]
        return one.verdict


class Life:
    """The suite's repository with its baselines, and the engine's."""

    def __init__(self, folder: Path) -> None:
        self.engine = Clone(folder / "engine")
        self.suite = Clone(folder / "checkout")
        self.runs = folder / "runs"
        for name in ("scenarios", "baselines"):
            (self.suite.path / name).mkdir()
            (self.suite.path / name / ".keep").touch()
        self.commit_suite("an empty suite")

    def commit_suite(self, message: str) -> None:
        self.suite.git("add", "--all")
        self.suite.commit(message)

    def build(self, version: str, message: str = "") -> EngineBuild:
        """A new commit of the engine, on its current branch."""
        commit = self.engine.commit(message or version)
        return EngineBuild("tensorrt-llm", version, commit)

    def measure(self, build: EngineBuild, speed: float, starts: int = 2) -> Measured:
        """A run of the suite on that build, judged against the nearest baseline and the anchor."""
        store = suite_store()
        nearest = store.choose(HARDWARE, SCENARIO, build, EngineRepo(self.engine.path))
        anchor = store.anchor(HARDWARE, SCENARIO, build)
        values = [speed * _SPREAD[number % len(_SPREAD)] for number in range(starts)]
        judgements = []
        if nearest is not None:
            judgements.append(_judged(nearest, values, BAND))
        if anchor is not None and nearest is not None and anchor.baseline != nearest.baseline:
            found = _judged(anchor, values, anchor_band(METRIC, BAND))
            judgements.append(replace(found, against="anchor"))
        folder = self._write(build, values, judgements)
        return Measured(folder, nearest, tuple(judgements))

    def _write(self, build: EngineBuild, values: list[float], judgements: list[Judgement]) -> Path:
        day = next(_DAYS)
        facts = {"started": f"2026-11-{day % 30 + 1:02d}", "synthetic": False}
        run = RunFolder.create(self.runs / f"run-{day}", facts)
        for number, value in enumerate(values, start=1):
            measure(
                run,
                "c8",
                start=number,
                started=f"2026-11-{day % 30 + 1:02d}T{number:02d}:00:00+00:00",
                scenario=SCENARIO,
                hardware=HARDWARE,
                engine=asdict(build),
                fingerprint=FACTS,
                metrics={METRIC: value},
                disturbed=[],
            )
        verdict = worst(one.verdict for one in judgements) if judgements else Verdict.NO_BASELINE
        run.record(
            record(
                "verdict",
                {
                    "test": f"test_serving[{SCENARIO}-c8]",
                    "name": f"{SCENARIO}-c8",
                    "scenario": SCENARIO,
                    "probe": "c8",
                    "verdict": verdict.value,
                    "judgements": [
                        {**asdict(one), "verdict": one.verdict.value} for one in judgements
                    ],
                },
            )
        )
        run.close()
        return run.path

    def accept(self, measured: Measured, reason: str, **options: Any) -> Promotion:
        """Record the run and promote the candidate, as Ada, and commit the file."""
        (candidate,), _ = record_candidates([measured.folder])
        done = promote(candidate, by="Ada", reason=reason, **options)
        self.commit_suite(f"baseline of {read(done.file).engine.version}")
        return done

    def stored(self, build: EngineBuild) -> Baseline:
        return read(suite_store().path(HARDWARE, SCENARIO, build.commit))


def _judged(chosen: ChosenBaseline, values: list[float], band: float) -> Judgement:
    entry = chosen.entry("c8")
    assert isinstance(entry, Entry)
    return judge_performance(METRIC, entry.values(METRIC), values, band=band)


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Life:
    """A suite and an engine of their own, which perfgate takes for its own in this test."""
    monkeypatch.setenv("PERFGATE_ROOT", str(tmp_path / "checkout"))
    monkeypatch.setenv("PERFGATE_HOME", str(tmp_path / "home"))
    return Life(tmp_path)
