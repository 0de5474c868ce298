"""What was measured, over all fresh starts: values, units, and the build that gave them."""

import pytest
from building import SUMS, judgement, lower_accuracy

from perfgate.core.measurement import Json, Measurement
from perfgate.engines.base import EngineBuild
from perfgate.judging.assembly.measured import measured_build, measured_metrics


def starts(metric: str, *values: float) -> list[Measurement]:
    return [Measurement({metric: value}) for value in values]


def test_a_speed_is_the_geometric_mean_and_a_score_the_arithmetic_one() -> None:
    (speed,) = measured_metrics(starts("output_throughput", 90.0, 160.0))
    (score,) = measured_metrics(starts(SUMS, 0.5, 0.7))
    assert (round(speed.value, 9), speed.unit, speed.n) == (120.0, "tokens/s", 2)
    assert (round(score.value, 9), score.unit, score.n) == (0.6, "fraction", 2)


def test_a_judged_metric_stands_on_the_starts_that_the_gate_used_and_comes_first() -> None:
    found = measured_metrics(
        [
            Measurement({"ttft_mean_ms": 1.0, "output_throughput": 1.0, SUMS: 0.5}),
            Measurement({"ttft_mean_ms": 1.0, "output_throughput": 4.0, SUMS: 0.5}),
            Measurement({"ttft_mean_ms": 1.0, "output_throughput": 999.0, SUMS: 0.5}),
        ],
        (judgement(runs_used=2), judgement(against="anchor", runs_used=3), lower_accuracy()),
    )
    assert [(one.metric, one.n) for one in found] == [
        ("output_throughput", 2),
        (SUMS, 2),
        ("ttft_mean_ms", 3),
    ]
    assert round(found[0].value, 9) == 2.0


def test_what_could_not_be_judged_stands_on_all_starts() -> None:
    unjudged = judgement(runs_used=0, measured=None)
    (found,) = measured_metrics(starts("output_throughput", 1.0, 4.0), (unjudged,))
    assert found.n == 2


def test_a_metric_that_one_start_lacks_counts_the_others() -> None:
    found = measured_metrics([*starts("ttft_mean_ms", 2.0, 8.0), *starts("duration_s", 3.0)])
    assert [(one.metric, one.values) for one in found] == [
        ("ttft_mean_ms", (2.0, 8.0)),
        ("duration_s", (3.0,)),
    ]


BUILD = EngineBuild("tensorrt-llm", "1.3.0", "0a1b2c3")


@pytest.mark.parametrize(
    ("facts", "image", "digest"),
    [
        ({}, "", ""),
        ({"slurm": {"job": 12}}, "", ""),
        (
            {"docker": {"image": "engine:1", "id": "sha256:1", "digests": []}},
            "engine:1",
            "sha256:1",
        ),
        (
            {"docker": {"image": "engine:1", "id": "sha256:1", "digests": ["engine@sha256:2"]}},
            "engine:1",
            "engine@sha256:2",
        ),
    ],
)
def test_the_build_names_its_image(facts: dict[str, Json], image: str, digest: str) -> None:
    found = measured_build(BUILD, [Measurement({}, facts)])
    assert (found.image, found.digest) == (image, digest)
