"""Answers that are faulty rather than a little worse."""

import math

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.judging.rules.diagnostics import BROKEN_OUTPUT, OUTPUT_FORMAT, sanity


@each(
    ("strict", "flexible", "invalid", "reference", "faults"),
    [
        pytest.param(0.95, 0.96, 0.0, 0.95, (), id="healthy"),
        pytest.param(0.95, 0.96, 0.0, None, (), id="healthy, no reference"),
        pytest.param(0.569, 0.970, 0.0, 0.96, (OUTPUT_FORMAT,), id="the known case"),
        pytest.param(0.569, 0.970, 0.0, None, (OUTPUT_FORMAT,), id="the same, no reference"),
        pytest.param(0.569, 0.970, 0.0, 0.58, (), id="never kept the form"),
        pytest.param(0.90, 0.96, 0.0, 0.95, (), id="a regression, no fault"),
        pytest.param(0.04, 0.10, 0.0, 0.05, (), id="a weak model, 6 points apart"),
        pytest.param(0.02, 0.03, 0.0, 0.95, (BROKEN_OUTPUT,), id="gibberish"),
        pytest.param(0.45, 0.48, 0.0, 0.95, (BROKEN_OUTPUT,), id="below one half"),
        pytest.param(0.45, 0.48, 0.0, 0.80, (BROKEN_OUTPUT,), id="below one half of 0.8"),
        pytest.param(0.45, 0.48, 0.0, 0.79, (), id="a weaker model may fall to 0.48"),
        pytest.param(0.30, 0.30, 0.0, 0.67, (BROKEN_OUTPUT,), id="less than half of a weak model"),
        pytest.param(0.34, 0.34, 0.0, 0.67, (), id="half of a weak model"),
        pytest.param(0.30, 0.30, 0.0, None, (), id="no reference, no floor"),
        pytest.param(0.20, 0.90, 0.0, 0.95, (OUTPUT_FORMAT,), id="only strict is low"),
        pytest.param(0.95, 0.96, 0.021, 0.95, (BROKEN_OUTPUT,), id="invalid answers"),
        pytest.param(0.95, 0.96, 0.020, 0.95, (), id="a few invalid answers"),
        pytest.param(
            0.05, 0.40, 0.5, 0.95, (OUTPUT_FORMAT, BROKEN_OUTPUT), id="both faults at once"
        ),
        pytest.param(0.30, None, 0.0, 0.95, (BROKEN_OUTPUT,), id="one filter only"),
        pytest.param(0.90, None, 0.0, 0.95, (), id="one filter only, healthy"),
    ],
)
def test_faults(
    strict: float,
    flexible: float | None,
    invalid: float,
    reference: float | None,
    faults: tuple[str, ...],
) -> None:
    assert sanity(strict, flexible, invalid, reference) == faults


def test_invalid_answers_that_the_baseline_has_too_are_no_fault() -> None:
    assert sanity(0.6, 0.6, 0.10, 0.6, reference_invalid=0.09) == ()
    assert sanity(0.6, 0.6, 0.12, 0.6, reference_invalid=0.09) == (BROKEN_OUTPUT,)


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1, math.inf])
def test_shares_that_are_none(bad: float) -> None:
    with pytest.raises(InputError, match="not a share"):
        sanity(bad, 0.9)
    with pytest.raises(InputError, match="not a share"):
        sanity(0.9, 0.9, 0.0, bad)
