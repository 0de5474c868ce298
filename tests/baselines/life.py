"""A suite in a git repository, an engine that it measures, and their runs: real but the speed."""

import os
import subprocess
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from building import outcome
from plain_records import fields_of, record
from plain_values import judge_performance

from perfgate.baselines import Baseline, ChosenBaseline, read, suite_store
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.recording import record_candidates
from perfgate.core.verdict import Judgement, Verdict, worst
from perfgate.engines.base import EngineBuild
from perfgate.judging.acceptance import Promotion, promote
from perfgate.judging.rules.scale import anchor_band
from perfgate.runs.run_folder import RunFolder, now

SCENARIO = "h200-demo-serve"
HARDWARE = "8xH200"
METRIC = "output_throughput"
BAND = 0.02
FACTS = {"content": "5d41402abc4b2a76", "cpu": "Grace", "gpus": "H200", "driver": "570.1"}
# What fresh starts of one build differ by: the family's prior is 0.5 %.
_SPREAD = (1.0, 1.004, 0.996, 1.002, 0.998)
_DAYS = count(1)
_GIT = ("-c", "commit.gpgsign=false", "-c", "user.name=Tests", "-c", "user.email=tests@localhost")


class Clone:
    """A repository to make commits, branches and tags in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *words: str) -> str:
        """Run git here; what it prints."""
        # Whatever runs these tests may itself be a git hook, or sign its commits.
        kept = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
        env = {**kept, "GIT_CONFIG_GLOBAL": os.devnull}
        argv = ["git", "-C", str(self.path), *_GIT, *words]
        done = subprocess.run(argv, check=True, capture_output=True, text=True, env=env)
        return done.stdout.strip()

    def commit(self, message: str = "more") -> str:
        """An empty commit on the current branch; its hash."""
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "engine")


def begun(folder: Path, **facts: object) -> RunFolder:
    return RunFolder.create(folder, {"started": now(), "synthetic": False, **facts})


def measure(run: RunFolder, probe: str = "c4", value: float = 100.0, **changes: Any) -> None:
    """Write down what a campaign does for one measurement."""
    engine = {"name": "llama.cpp", "version": "1.3.0", "commit": "abc123"}
    line = {"fingerprint": {"cpu": "Grace"}, "metrics": {METRIC: value}, "started": now()}
    run.record(record("measurement", {"probe": probe, "engine": engine, **line, **changes}))


def judge(run: RunFolder, probe: str = "c4", verdict: Any = "NO_BASELINE", **changes: Any) -> None:
    """Write down the verdict of a probe."""
    judgements = changes.pop("judgements", ())
    told = {"probe": probe, "name": f"small-serve-{probe}", **changes}
    plain = {**fields_of(outcome(verdict=Verdict(verdict), judgements=judgements)), **told}
    run.record(record("verdict", {"test": plain["name"], **plain}))


@dataclass
class Measured:
    """A run of the suite, and what it compared with."""

    folder: Path
    nearest: ChosenBaseline | None
    judgements: tuple[Judgement, ...]

    @property
    def level(self) -> list[str]:
        """The versions that it was compared with, the nearest first."""
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
        return EngineBuild("tensorrt-llm", version, self.engine.commit(message or version))

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
        number = next(_DAYS)
        day = f"2026-11-{number % 30 + 1:02d}"
        place = {"scenario": SCENARIO, "hardware": HARDWARE, "engine": asdict(build)}
        run = begun(self.runs / f"run-{number}", started=day)
        for start, value in enumerate(values, start=1):
            began = f"{day}T{start:02d}:00:00+00:00"
            measure(run, "c8", value, start=start, started=began, fingerprint=FACTS, **place)
        verdict = worst(one.verdict for one in judgements) if judgements else "NO_BASELINE"
        named = {"name": f"{SCENARIO}-c8", "scenario": SCENARIO}
        judge(run, "c8", verdict, judgements=tuple(judgements), **named)
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
    return judge_performance(METRIC, chosen.entry("c8").values(METRIC), values, band=band)


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Life:
    """A suite and an engine of their own, which perfgate takes for its own in this test."""
    monkeypatch.setenv("PERFGATE_ROOT", str(tmp_path / "checkout"))
    monkeypatch.setenv("PERFGATE_HOME", str(tmp_path / "home"))
    return Life(tmp_path)
