"""Synthetic metrics: made-up values around documented ones, consistent with each other. Pure.

The one noise that all times share is that of the throughput family, so that rates, durations and
latencies of one run belong together as those of a real one do.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perfgate.core.metrics import ACCEPTANCE, THROUGHPUT, TTFT, lookup

_FARTHEST = 2.0  # standard deviations: a rehearsal shows the road, not the gate's error rates
_USER, _LATENCY = "output_throughput_per_user", "mean_request_latency_ms"
_POINTS = ("median", "p90", "p95", "p99")
# Statistics of a latency relative to its mean, where none is documented: median, p90, p99.
_SHAPES = {
    "ttft": (0.98, 1.2, 1.6),
    "tpot": (0.995, 1.03, 1.08),
    "itl": (0.92, 1.3, 2.4),
    "e2el": (0.99, 1.05, 1.1),
}


@dataclass(frozen=True)
class Load:
    """What a program really does: requests in all and in flight, mean lengths in tokens, GPUs."""

    requests: int
    concurrency: int
    isl: float
    osl: float
    gpus: int


@dataclass(frozen=True)
class Guess:
    """What to make up where nothing is documented.

    Attributes:
        user_speed: output tokens/s of a request that is alone.
        knee: requests in flight at which that speed has halved.
        throughput: factor on the throughput, for settings that move it.
        tpot: factor on the time per output token, beyond what the throughput gives.
        tokens_per_step: tokens that one step of speculative decoding gives; 1 without it.
    """

    user_speed: float
    knee: float
    throughput: float = 1.0
    tpot: float = 1.0
    tokens_per_step: float = 1.0


# How much of each rate one request is.
_RATES: Mapping[str, Callable[[Load], float]] = {
    "output_throughput": lambda load: load.osl,
    "output_throughput_per_gpu": lambda load: load.osl / load.gpus,
    "request_throughput": lambda _: 1.0,
    "total_token_throughput": lambda load: load.isl + load.osl,
}


def dice(*parts: object) -> random.Random:
    """A source of chance that is the same for the same parts, on every machine."""
    return random.Random("/".join(map(str, parts)))  # noqa: S311


def performance(
    known: Mapping[str, float], load: Load, guess: Guess, chance: random.Random, loss: float = 0.0
) -> dict[str, float]:
    """Values of all performance metrics, in their units.

    Holds: request rate × duration = requests; output tokens/s = request rate × OSL; per GPU × GPUs
    = total; mean latency = TTFT + (OSL - 1) × TPOT where these three are not all documented; and
    Little's law: no more requests in flight than asked.

    Args:
        known: documented values by canonical metric name.
        load: what is done.
        guess: what to make up for the rest.
        chance: from `dice`.
        loss: fraction of throughput lost; times grow by 1 / (1 - loss), which is a little more.
    """
    stretch = _noise(chance, THROUGHPUT.sigma) / (1 - loss)
    rate = _rate(known, load, guess) / stretch
    ceiling = min(load.concurrency, load.requests) / rate
    latency, ttft, tpot = _means(known, load, guess, ceiling / stretch)
    latency, ttft, tpot = latency * stretch, ttft * stretch, tpot * stretch
    if "ttft_mean_ms" not in known or "tpot_mean_ms" not in known:
        noisy = ttft * _noise(chance, TTFT.sigma)
        ttft = max(min(noisy, ceiling - (load.osl - 1) * tpot), ttft / 10)
        latency = ttft + (load.osl - 1) * tpot
    values = {name: rate * of_one_request(load) for name, of_one_request in _RATES.items()}
    user = known.get(_USER, load.osl / latency * stretch) / stretch
    values |= {_USER: user, _LATENCY: 1000 * latency, "duration_s": load.requests / rate}
    speed = "output_speed_per_user"
    values[speed] = known.get(speed, stretch / tpot) / stretch
    chunk = tpot * guess.tokens_per_step  # what one step accepts comes in one chunk
    if "itl_mean_ms" in known:
        chunk = known["itl_mean_ms"] / 1000 * stretch
    means = {"ttft": ttft, "tpot": tpot, "itl": chunk, "e2el": latency}
    for short, mean in means.items():
        values |= _statistics(short, 1000 * mean, known, stretch, chance)
    if guess.tokens_per_step > 1:
        tokens = known.get("acceptance_length", guess.tokens_per_step)
        tokens *= _noise(chance, ACCEPTANCE.sigma) * (1 - loss)
        values["acceptance_length"] = max(1.0, tokens)
    return values


def scaled(values: Mapping[str, float], factor: Callable[[str], float]) -> dict[str, float]:
    """Metrics, some multiplied, and with them what follows from them: a report stays consistent.

    Rates and duration are one number in several units, so that the factor farthest from 1 holds
    for all of them; latencies without a factor of their own shrink with the duration where a
    request would take longer than all of them. Percentiles of a latency stay in order: where the
    factors would break it, all get the one farthest from 1.

    Args:
        values: metric → value.
        factor: of a metric, above 0; 1: it stays.
    """
    factors = {name: factor(name) for name in values}
    rate = _farthest([*(factors[name] for name in _RATES), 1 / factors["duration_s"]])
    factors |= {**dict.fromkeys(_RATES, rate), "duration_s": 1 / rate}
    if factors[_USER] * values[_USER] > rate * values["output_throughput"]:
        factors[_USER] = rate  # no user gets more than all of them
    if factors[_LATENCY] * values[_LATENCY] > 1000 * values["duration_s"] / rate:
        times = (name for name, own in factors.items() if name.endswith("_ms") and own == 1)
        factors |= dict.fromkeys(times, 1 / rate)
    for short in _SHAPES:
        names = [name for point in _POINTS if (name := f"{short}_{point}_ms") in values]
        now = [values[name] * factors[name] for name in names]
        if now != sorted(now):
            factors |= dict.fromkeys(names, _farthest([factors[name] for name in names]))
    return {name: value * factors[name] for name, value in values.items()}


def _farthest(factors: Sequence[float]) -> float:
    return max(factors, key=lambda factor: abs(math.log(factor)))


def _rate(known: Mapping[str, float], load: Load, guess: Guess) -> float:
    """Requests a second, before noise."""
    for name, of_one_request in _RATES.items():
        if name in known:
            return known[name] / of_one_request(load)
    if "duration_s" in known:
        return load.requests / known["duration_s"]
    in_flight = min(load.concurrency, load.requests)
    speed = guess.user_speed / (1 + in_flight / guess.knee)
    # Prefill is some twenty times as fast per token as decoding in large batches.
    return guess.throughput * in_flight * speed / (load.osl + load.isl / 20)


def _means(
    known: Mapping[str, float], load: Load, guess: Guess, ceiling: float
) -> tuple[float, float, float]:
    """Mean latency, TTFT and TPOT in seconds, before noise."""
    steps = max(load.osl - 1, 1e-9)
    ttft, tpot = known.get("ttft_mean_ms"), known.get("tpot_mean_ms")
    documented = known.get("mean_request_latency_ms", known.get("e2el_mean_ms"))
    if documented is not None:
        latency = documented / 1000
    elif ttft is not None and tpot is not None:
        latency = (ttft + steps * tpot) / 1000
    elif "output_throughput_per_user" in known:
        latency = load.osl / known["output_throughput_per_user"]
    else:
        # At the end of a run not all slots are taken; if all requests come at once, never again.
        latency = ceiling * (0.97 if load.requests > load.concurrency else 0.75)
    latency = min(latency, ceiling)
    first = ttft / 1000 if ttft is not None else latency * load.isl / (load.isl + 40 * load.osl)
    each = tpot / 1000 if tpot is not None else (latency - first) / steps * guess.tpot
    if ttft is None:
        first = max(latency - steps * each, latency / 1000)
    return latency, first, each


def _statistics(
    short: str, mean: float, known: Mapping[str, float], stretch: float, chance: random.Random
) -> dict[str, float]:
    """Mean, median, p90 and p99 of a latency, the last three in ascending order."""
    found = {f"{short}_mean_ms": mean}
    least = 0.0
    for statistic, share in zip(("median", "p90", "p99"), _SHAPES[short], strict=True):
        name = f"{short}_{statistic}_ms"
        value = known[name] * stretch if name in known else mean * share
        if statistic != "median":
            value *= _noise(chance, lookup(name).family.sigma)
        least = max(least, value)
        found[name] = least
    return found


def right_answers(
    score: float, questions: int, stable: random.Random, chance: random.Random
) -> list[bool]:
    """Which questions are answered right, `score` of them but for a few.

    Args:
        score: share of right answers, 0…1.
        questions: how many there are.
        stable: the same for all fresh starts: which questions are hard.
        chance: of this fresh start: about one answer of a hundred comes out otherwise.
    """
    order = list(range(questions))
    stable.shuffle(order)
    right = round(score * questions)
    answers = dict.fromkeys(order, False) | dict.fromkeys(order[:right], True)
    # Those that turn are near the border between hard and easy, as many up as down on average.
    near = order[max(0, right - questions // 20) : right + questions // 20]
    for question in near:
        answers[question] ^= chance.random() < 0.1
    surplus = sum(answers.values()) - right
    for question in near:
        if abs(surplus) > 2 and answers[question] == (surplus > 0):
            answers[question] = not answers[question]
            surplus -= 1 if surplus > 0 else -1
    return [answers[question] for question in range(questions)]


def _noise(chance: random.Random, sigma: float) -> float:
    return math.exp(sigma * max(-_FARTHEST, min(_FARTHEST, chance.gauss(0.0, 1.0))))
