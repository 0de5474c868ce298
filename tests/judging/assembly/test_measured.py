"""What fresh starts show: values, units, the build that gave them, settings not in force."""

import json
from dataclasses import replace

from building import SCENARIO, SUMS, judgement, lower_accuracy, outcome
from plain_records import fields_of
from starts_made import SPEED
from tables import each

from perfgate.core.errors import RunError
from perfgate.core.failures import FAILURES
from perfgate.core.measurement import Json, Measurement
from perfgate.core.plain import to_plain
from perfgate.core.verdict import Verdict
from perfgate.engines.base import EngineBuild
from perfgate.engines.effective_settings import EffectiveSettings, require_effective_settings
from perfgate.judging.assembly.measured import measured_build, measured_metrics, settings_notes
from perfgate.scenarios.scenario import EngineSettings


@each(
    "metric, values, value, unit",
    [
        (SPEED, (90.0, 160.0), 120.0, "tokens/s"),  # the geometric mean
        (SUMS, (0.5, 0.7), 0.6, "fraction"),
        (SPEED, (-1.0, 3.0), 1.0, "tokens/s"),
    ],
)
def test_the_central_value(metric: str, values: tuple[float, ...], value: float, unit: str) -> None:
    other = Measurement({"duration_s": 3.0})  # a start that lacks the metric
    found, _ = measured_metrics([*(Measurement({metric: one}) for one in values), other])
    assert (round(found.value, 9), found.unit, found.values) == (value, unit, values)


def test_a_judged_metric_stands_on_the_starts_that_the_gate_used_and_comes_first() -> None:
    starts = [
        Measurement({"ttft_mean_ms": 1.0, SPEED: speed, SUMS: 0.5}) for speed in (1.0, 4.0, 999.0)
    ]
    judged = (judgement(runs_used=2), judgement(against="anchor", runs_used=3), lower_accuracy())
    found = measured_metrics(starts, judged)
    assert [(one.metric, one.n) for one in found] == [(SPEED, 2), (SUMS, 2), ("ttft_mean_ms", 3)]
    assert round(found[0].value, 9) == 2.0
    unjudged = judgement(runs_used=0, measured=None)
    assert measured_metrics(starts, (unjudged,))[0].n == 3


DOCKER: dict[str, Json] = {"image": "engine:1", "id": "sha256:1", "digests": []}
PULLED: dict[str, Json] = {**DOCKER, "digests": ["engine@sha256:2"]}


@each(
    "facts, image, digest",
    [
        ({}, "", ""),
        ({"slurm": {"job": 12}}, "", ""),
        ({"docker": DOCKER}, "engine:1", "sha256:1"),
        ({"docker": PULLED}, "engine:1", "engine@sha256:2"),
    ],
)
def test_the_build_names_its_image(facts: dict[str, Json], image: str, digest: str) -> None:
    build = EngineBuild("tensorrt-llm", "1.3.0", "0a1b2c3")
    found = measured_build(build, [Measurement({}, facts)])
    assert (found.image, found.digest) == (image, digest)


WHY = "SGLang resets it"
DP = {"attention_dp": True}
BY_THE_SCENARIO = "not in force, by the scenario alone, as the server does not tell"


@each(
    "inert, others, found, notes",
    [
        # Said once for all starts, with both values.
        (DP, {}, EffectiveSettings({"tp": 8, "attention_dp": False}, source="/get_server_info"),
         f"not in force, as the scenario says: attention_dp: asked True, in force False: {WHY}"),
        ({}, {}, EffectiveSettings(
            {"tp": 8}, limits=("max_running_requests 48, 1000 requests in flight",)),
         "limited: max_running_requests 48, 1000 requests in flight"),
        (DP, {}, EffectiveSettings({"attention_dp": True}),
         "in force, which the scenario says it is not: "
         "attention_dp: what is documented was measured without it; remove "
         "engine.inert.attention_dp, or use the documented release"),
        (DP, {}, EffectiveSettings({"tp": 8}), f"{BY_THE_SCENARIO}: attention_dp: {WHY}"),
        (DP, {}, None, f"{BY_THE_SCENARIO}: attention_dp: {WHY}"),
        ({}, {}, EffectiveSettings({"tp": 8}), ""),
        ({}, {"kv_cache_dtype": "fp8", "attention_dp": True},
         EffectiveSettings({"tp": 8}, source="log"),
         "not established: whether kv_cache_dtype, attention_dp is in force: log does not tell"),
    ],
)  # fmt: skip
def test_what_is_told_of_settings(inert, others, found, notes) -> None:
    settings = EngineSettings(tp=8, **inert, **others)
    known = dict.fromkeys(inert, WHY) or None
    engine = replace(SCENARIO.engine, settings=settings, inert=known)
    scenario = replace(SCENARIO, engine=engine)
    facts = {} if found is None else require_effective_settings(scenario, found)
    assert "\n".join(settings_notes(scenario, [Measurement({}, facts)] * 3)) == notes
    assert list(settings_notes(scenario, [])) == []


def test_a_record_holds_the_numbers_behind_the_verdict() -> None:
    record = json.loads(json.dumps(fields_of(outcome(injected=("a=1",), notes=("n",)))))
    assert record.pop("judgements") == json.loads(json.dumps([to_plain(judgement())]))
    judged, reported = record.pop("measured")
    assert (judged["metric"], judged["unit"]) == (SPEED, "tokens/s")
    assert judged["values"] == [1085.3, 1080.1]
    assert (reported["metric"], reported["unit"]) == ("ttft_mean_ms", "ms")
    assert round(reported["value"], 9) == 300
    named = {"name": "small-serve-c4", "scenario": "small-serve", "probe": "c4", "starts": 2}
    build = {"name": "llama.cpp", "version": "1.3.0", "commit": "def456", "image": "", "digest": ""}
    told = {
        "verdict": "REGRESSION",
        "compared_with": "llama.cpp 1.2.0 of 2026-11-05, accepted by Ada, 5 fresh starts",
        "folder": "/runs/one/small-serve/start-2-new/c4",
        "injected": ["a=1"],
        "notes": ["n"],
        "build": build,
        "synthetic": False,
    }
    texts = dict.fromkeys(("reason", "extra_options", "rerun", "resumed_from"), "")
    lists = ("observed", "changed_questions", "controls", "settings", "documented")
    nothing = dict.fromkeys(("error", "judge_input", "provenance", "schema_version"))
    assert record == {**named, **told, **texts, **{name: [] for name in lists}, **nothing}


def test_a_record_of_an_error_holds_evidence_and_next_step() -> None:
    error = RunError("oom", "the server ended", evidence=("CUDA out of memory",))
    record = fields_of(outcome(verdict=Verdict.ERROR, folder=None, error=error, synthetic=True))
    next_step = FAILURES["oom"].next_step
    told = {"error_class": "oom", "message": "the server ended", "next_step": next_step}
    assert record["error"] == {**told, "evidence": ["CUDA out of memory"]}
    assert (record["verdict"], record["folder"], record["synthetic"]) == ("ERROR", None, True)
