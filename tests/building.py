"""Small, valid values for tests; each takes changes to what a test is about."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from plain_records import record

from perfgate.baselines import Baseline, BaselineRun, Entry
from perfgate.core.measurement import MeasuredBuild, Measurement
from perfgate.core.verdict import AppliedWaiver, Judgement, Rule, Verdict
from perfgate.engines.base import EngineBuild
from perfgate.judging.assembly.judge_input import Outcome, ProbeJudgement, judge
from perfgate.judging.assembly.judgement import ProbeEvidence, Reference, probe_input
from perfgate.judging.assembly.measured import measured_metrics
from perfgate.machine.hardware import Gpu, Machine
from perfgate.runs.record import Record
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import (
    AccuracyTask,
    EngineChoice,
    EngineSettings,
    GatePolicy,
    Hardware,
    Limits,
    Model,
    Scenario,
    Source,
    Workload,
)

SUMS = "accuracy:sums:exact_match:strict-match"

SCENARIO = Scenario(
    id="small-serve",
    title="A small model, served",
    source=Source("guide.md", "Serving"),
    hardware=Hardware("none", 0),
    model=Model("Small-1B", "bf16"),
    engine=EngineChoice("llama.cpp", EngineSettings(max_batch_size=4, cpu_threads=2)),
    workload=Workload(
        client="aiperf",
        dataset="synthetic",
        isl=64,
        osl=32,
        concurrency=(1, 4),
        requests_per_concurrency=6,
        seed=20,
    ),
    accuracy=(AccuracyTask("lm_eval", "sums", fewshot=5),),
    gate=GatePolicy(("output_throughput", "tpot_mean_ms", SUMS)),
    limits=Limits(60.0, 120.0, 600.0),
    markers=("local",),
)

MACHINE = Machine(
    host="node7",
    os="Linux-6.1",
    python="3.11.9",
    cpu="Grace",
    cores=72,
    memory_bytes=2**34,
    gpus=(),
    gpu_note="no nvidia-smi on PATH",
)


def judged(
    probe: Probe,
    reference: Reference,
    measurements: Sequence[Measurement],
    fingerprint: Mapping[str, str],
    rule: Rule,
) -> ProbeJudgement:
    """The verdict of a probe, with neither controls nor waivers."""
    measured = dict(enumerate(measurements, start=1))
    return judge(probe_input(ProbeEvidence(probe, reference, fingerprint, measured), rule))


def machine(*names: str, **changes: Any) -> Machine:
    """A machine with one GPU per name."""
    gpus = tuple(Gpu(name, 141 * 2**30, "570.1") for name in names)
    return replace(
        MACHINE, gpus=gpus, gpu_note="by nvidia-smi" if gpus else MACHINE.gpu_note, **changes
    )


def entry(*values: float, cpu: str = "Grace", metric: str = "output_throughput") -> Entry:
    """A probe's part of a baseline: one fresh start per value."""
    return Entry(
        {"content": "0123456789abcdef", "cpu": cpu},
        tuple(
            BaselineRun(f"run-{number}", f"2026-11-0{number}T08:00:00+00:00", {metric: value})
            for number, value in enumerate(values, start=1)
        ),
    )


def baseline(**changes: Any) -> Baseline:
    """A baseline of one commit."""
    made = Baseline(
        scenario=SCENARIO.id,
        hardware="cpu",
        engine=EngineBuild("llama.cpp", "1.2.0", "abc123"),
        accepted_by="Ada",
        accepted_at="2026-11-05T12:00:00+00:00",
        reason="release 1.2 as it was shipped",
        entries={"c1": entry(100.0, 101.0)},
    )
    return replace(made, **changes)


def of_commit(commit: str, **changes: Any) -> Baseline:
    """A baseline of a commit by name."""
    return baseline(engine=EngineBuild("llama.cpp", "1.2.0", commit), **changes)


def with_answers(answers: dict[str, bool]) -> Entry:
    """An accuracy probe's part of a baseline."""
    score = sum(answers.values()) / len(answers)
    run = BaselineRun("run-1", "2026-11-01T08:00:00+00:00", {SUMS: score}, {SUMS: answers})
    return Entry({"content": "fedcba9876543210"}, (run,))


def applied(text: str, last_day: date = date(2026, 12, 1)) -> AppliedWaiver:
    """A waiver that lets a regression through."""
    return AppliedWaiver("Ada", last_day, text)


def judgement(**changes: Any) -> Judgement:
    """A regression of the throughput by 12.3 %."""
    made = Judgement(
        metric="output_throughput",
        verdict=Verdict.REGRESSION,
        baseline=1234.5,
        measured=1082.7,
        change=-0.123,
        interval=(-0.14, -0.105),
        band=0.02,
        runs_used=2,
        needs_more_runs=False,
        reason="12.3 % lower, which is more than the band of 2.0 %",
    )
    return replace(made, **changes)


def lower_accuracy(**changes: Any) -> Judgement:
    """A regression of the accuracy by 5 points."""
    made = judgement(
        metric=SUMS,
        baseline=0.6667,
        measured=0.6167,
        change=-0.05,
        interval=(-0.09, -0.01),
        band=0.05,
        reason="5.0 points lower",
        notes=("60 questions can show no less than 5 points",),
    )
    return replace(made, **changes)


MEASURED = tuple(
    Measurement({"output_throughput": speed, "ttft_mean_ms": wait})
    for speed, wait in ((1085.3, 250.0), (1080.1, 360.0))
)


def outcome(**changes: Any) -> Outcome:
    """An outcome of the sweep point c4, a regression."""
    made = Outcome(
        load_probes(SCENARIO)[1],
        Verdict.REGRESSION,
        (judgement(),),
        MEASURED,
        compared_with="llama.cpp 1.2.0 of 2026-11-05, accepted by Ada, 5 fresh starts",
        folder=Path("/runs/one/small-serve/start-2-new/c4"),
        measured=measured_metrics(MEASURED, (judgement(),)),
        build=MeasuredBuild("llama.cpp", "1.3.0", "def456"),
    )
    return replace(made, **changes)


def with_extra_options() -> Probe:
    """The sweep point c4 of a scenario with an option beyond the settings."""
    engine = replace(SCENARIO.engine, extra_args={"server": ("--workers", 4)})
    return load_probes(replace(SCENARIO, engine=engine))[1]


def with_inert_setting() -> Outcome:
    """An outcome of a scenario of which a setting is known not to be in force."""
    engine = replace(SCENARIO.engine, inert={"tp": "one core has no peers"})
    return outcome(probe=load_probes(replace(SCENARIO, engine=engine))[1])


def group_record(**changes: Any) -> Record:
    """The record of a group that shared its starts."""
    fields = {
        "scenario": SCENARIO.id,
        "hardware": "cpu",
        "starts": {"planned": 5, "made": 7, "without_sharing": 16, "again": 1},
        "seconds": {"spent": 1680.0, "starting": 560.0, "saved": 720.0},
    }
    return record("group", fields, **changes)
