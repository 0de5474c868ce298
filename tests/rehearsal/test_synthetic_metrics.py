"""Draw: made-up values lie around the documented ones and belong to one and the same run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.metrics import METRICS
from perfgate.rehearsal.synthetic_metrics import Guess, Load, dice, performance

LOADS = st.builds(
    Load,
    requests=st.integers(1, 200_000),
    concurrency=st.integers(1, 10_000),
    isl=st.floats(1, 40_000),
    osl=st.floats(2, 10_000),
    gpus=st.integers(1, 64),
)
GUESSES = st.builds(
    Guess,
    user_speed=st.floats(1, 500),
    knee=st.floats(1, 5000),
    throughput=st.floats(0.5, 1.5),
    tpot=st.floats(0.7, 1.0),
    tokens_per_step=st.floats(1, 4),
)
KNOWN = st.dictionaries(
    st.sampled_from(["output_throughput", "request_throughput", "output_throughput_per_gpu"]),
    st.floats(0.1, 1e5),
    max_size=1,
)
LOSSES = st.sampled_from([0.0, 0.08, 0.5])
SEEDS = st.integers(0, 10_000)
DOCUMENTED = {  # of one max-throughput run on eight GPUs
    "request_throughput": 21.0675,
    "output_throughput": 43146.2042,
    "total_token_throughput": 65100.6376,
    "output_throughput_per_gpu": 5393.2755,
    "output_throughput_per_user": 6.1806,
    "mean_request_latency_ms": 332826.9898,
}
RUN = Load(114688, 7168, 1042, 2048, 8)  # the ISL that its totals imply
GUESS = Guess(100.0, 320.0)


@given(KNOWN, LOADS, GUESSES, SEEDS, LOSSES)
def test_all_values_are_of_one_run_and_finite(known, load, guess, seed, loss) -> None:
    found = performance(known, load, guess, dice(seed), loss)
    rate, duration = found["request_throughput"], found["duration_s"]
    assert rate * duration == pytest.approx(load.requests)
    assert found["output_throughput"] == pytest.approx(rate * load.osl)
    assert found["total_token_throughput"] == pytest.approx(rate * (load.isl + load.osl))
    assert found["output_throughput_per_gpu"] * load.gpus == pytest.approx(
        found["output_throughput"]
    )
    latency_s = found["mean_request_latency_ms"] / 1000
    assert latency_s == pytest.approx(
        (found["ttft_mean_ms"] + (load.osl - 1) * found["tpot_mean_ms"]) / 1000
    )
    # Little's law: no more in flight than there may be.
    assert rate * latency_s <= min(load.concurrency, load.requests) * (1 + 1e-6)
    assert set(found) <= set(METRICS)
    assert all(0 < value < float("inf") for value in found.values())
    for short in ("ttft", "tpot", "itl", "e2el"):
        spots = [found[f"{short}_{spot}_ms"] for spot in ("median", "p90", "p99")]
        assert spots == sorted(spots)


def test_the_same_seed_gives_the_same_numbers_another_start_others() -> None:
    one = performance(DOCUMENTED, RUN, GUESS, dice(20, "scenario", "c1", 1))
    again = performance(DOCUMENTED, RUN, GUESS, dice(20, "scenario", "c1", 1))
    other = performance(DOCUMENTED, RUN, GUESS, dice(20, "scenario", "c1", 2))
    assert one == again
    assert one["output_throughput"] != other["output_throughput"]
