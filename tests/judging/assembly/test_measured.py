"""What fresh starts show: values, units, the build that gave them, settings not in force."""

from dataclasses import replace

from building import SCENARIO, SUMS, judgement, lower_accuracy
from starts_made import SPEED
from tables import each

from perfgate.core.measurement import Json, Measurement
from perfgate.engines.base import EngineBuild
from perfgate.engines.in_force import InForce, require_in_force
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
        (
            DP,
            {},
            InForce({"tp": 8, "attention_dp": False}, source="/get_server_info"),
            f"not in force, as the scenario says: attention_dp: asked True, in force False: {WHY}",
        ),
        (
            {},
            {},
            InForce({"tp": 8}, limits=("max_running_requests 48, 1000 requests in flight",)),
            "limited: max_running_requests 48, 1000 requests in flight",
        ),
        (
            DP,
            {},
            InForce({"attention_dp": True}),
            "in force, which the scenario says it is not: attention_dp: what is documented was "
            "measured without it; remove engine.inert.attention_dp, or use the documented release",
        ),
        (DP, {}, InForce({"tp": 8}), f"{BY_THE_SCENARIO}: attention_dp: {WHY}"),
        (DP, {}, None, f"{BY_THE_SCENARIO}: attention_dp: {WHY}"),
        ({}, {}, InForce({"tp": 8}), ""),
        (
            {},
            {"kv_cache_dtype": "fp8", "attention_dp": True},
            InForce({"tp": 8}, source="its log"),
            "not established: whether kv_cache_dtype, attention_dp is in force: "
            "its log does not tell",
        ),
    ],
)
def test_what_is_told_of_settings(
    inert: dict[str, bool], others: dict[str, str], found: InForce | None, notes: str
) -> None:
    settings = EngineSettings(tp=8, **inert, **others)  # type: ignore[arg-type]
    known = dict.fromkeys(inert, WHY) or None
    engine = replace(SCENARIO.engine, settings=settings, inert=known)
    scenario = replace(SCENARIO, engine=engine)
    facts = {} if found is None else require_in_force(scenario, found)
    assert "\n".join(settings_notes(scenario, [Measurement({}, facts)] * 3)) == notes
    assert list(settings_notes(scenario, [])) == []
