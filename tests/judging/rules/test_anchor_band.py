"""The band against the anchor: what may be lost since the last release, in however many steps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each

from perfgate.core.metrics import METRICS
from perfgate.judging.rules import scale
from perfgate.judging.rules.scale import ANCHOR_MARGIN, anchor_band

SCORE = "accuracy:gsm8k:exact_match:strict-match"


@each(
    ("metric", "band", "wide"),
    [
        ("output_throughput", 0.02, 0.029849),  # 1 - 0.98^1.5
        ("output_throughput", 0.9, 0.968377),
        ("tpot_median_ms", 0.02, 0.030150),  # 1.02^1.5 - 1
        ("ttft_median_ms", 0.15, 0.233238),
        ("ttft_p99_ms", 0.7, 0.999),  # 1.7^1.5 is more than twice: no band
        (SCORE, 0.02, 0.03),
        (SCORE, 0.8, 0.999),
    ],
)
def test_by_hand(metric: str, band: float, wide: float) -> None:
    assert anchor_band(metric, band) == pytest.approx(wide, abs=1e-6)


@settings(deadline=None)
@given(st.sampled_from(sorted(METRICS)), st.floats(1e-4, 0.55))
def test_it_is_one_and_a_half_margins(metric: str, band: float) -> None:
    found = METRICS[metric]
    margin = scale.margin(found, anchor_band(metric, band))
    assert margin == pytest.approx(ANCHOR_MARGIN * scale.margin(found, band))
