"""Identities: what the numbers of one report owe each other by their definitions.

A report whose numbers contradict each other was cut, mixed with another one or miscounted. None of
its numbers is used then.
"""

import math
from collections.abc import Mapping
from itertools import pairwise

from perfgate.core.errors import RunError

# Programs divide by durations that they take at slightly different moments; AIPerf's differ by
# some 0.1 %.
SLACK = 0.01
# The mean of per-request rates may exceed the rate of the whole at concurrency 1: 0.7 % in NVIDIA's
# own DeepSeek-V3.2 min-latency report.
PER_USER_SLACK = 0.1


def require_product(
    what: str, first: float, second: float, product: float, rounding: float = 0.0
) -> None:
    """``first × second = product``, within slack and rounding.

    Args:
        what: the identity in words, e.g. "request throughput × duration = requests".
        first: as printed.
        second: as printed.
        product: as printed.
        rounding: half a unit of the last printed digit of `first` and `second`.

    Raises:
        RunError: ``no_metrics``, with the arithmetic.
    """
    made = first * second
    allowed = SLACK * abs(product) + rounding * (abs(first) + abs(second)) + rounding
    if not abs(made - product) <= allowed:
        raise RunError(
            "no_metrics",
            f"the report contradicts itself: {what}, but {first:g} × {second:g} = {made:g}, "
            f"not {product:g}",
        )


def require_totals(
    metrics: Mapping[str, float],
    requests: float | None,
    isl: float | None,
    osl: float | None,
    rounding: float = 0.0,
) -> None:
    """Each rate × duration = what it counts, as far as rates and lengths are known.

    Args:
        metrics: with ``duration_s``.
        requests: how many were completed.
        isl: mean input tokens of a request.
        osl: mean output tokens of a request.
        rounding: see `require_product`.

    Raises:
        RunError: ``no_metrics``, with the arithmetic.
    """
    both = None if isl is None or osl is None else isl + osl
    # Rate → what it counts, and how many of them a request has.
    counted = {
        "request_throughput": ("requests", 1.0),
        "output_throughput": ("output tokens", osl),
        "total_token_throughput": ("input and output tokens", both),
    }
    for name, (what, each) in counted.items():
        if name in metrics and requests is not None and each is not None:
            identity = f"{name.replace('_', ' ')} × duration = {what}"
            duration, total = metrics["duration_s"], requests * each
            require_product(identity, metrics[name], duration, total, rounding)


def require_ordered(metrics: Mapping[str, float]) -> None:
    """What can never be larger than something else is not.

    Raises:
        RunError: ``no_metrics``, with both numbers.
    """
    chains: list[tuple[float, tuple[str, ...]]] = [
        (PER_USER_SLACK, ("output_throughput_per_user", "output_throughput")),
        (SLACK, ("output_throughput_per_gpu", "output_throughput")),
        # No answer has less than one token.
        (SLACK, ("request_throughput", "output_throughput", "total_token_throughput")),
        (SLACK, ("ttft_mean_ms", "mean_request_latency_ms")),
    ]
    chains += [
        (SLACK, tuple(f"{short}_{point}_ms" for point in ("median", "p90", "p95", "p99")))
        for short in ("ttft", "tpot", "itl", "e2el")
    ]
    for slack, chain in chains:
        known = [name for name in chain if name in metrics]
        for lower, upper in pairwise(known):
            if metrics[lower] > metrics[upper] * (1 + slack):
                raise RunError(
                    "no_metrics",
                    f"the report contradicts itself: {lower} {metrics[lower]:g} is more than "
                    f"{upper} {metrics[upper]:g}",
                )
    latency, duration = metrics.get("mean_request_latency_ms"), metrics.get("duration_s")
    if latency and duration and latency > 1e3 * duration * (1 + SLACK):
        raise RunError(
            "no_metrics",
            f"the report contradicts itself: a request took {latency:g} ms on average, all of them "
            f"together {1e3 * duration:g} ms",
        )


def require_gpus(metrics: Mapping[str, float], gpus: float | None) -> None:
    """Throughput per GPU × GPUs = throughput; of an unknown number of GPUs, a whole one.

    Raises:
        RunError: ``no_metrics``, with the arithmetic.
    """
    total, each = metrics.get("output_throughput"), metrics.get("output_throughput_per_gpu")
    if total is None or each is None:
        return
    if gpus is None:
        gpus = max(1, round(total / each))
    if not math.isclose(each * gpus, total, rel_tol=SLACK):
        raise RunError(
            "no_metrics",
            f"the report contradicts itself: output throughput per GPU × GPUs = output throughput, "
            f"but {each:g} × {gpus:g} = {each * gpus:g}, not {total:g}",
        )
