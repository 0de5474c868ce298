"""Rules about the load: sweep, numbers of requests, lengths of prompts and answers."""

from collections.abc import Iterator

from perfgate.scenarios.problem import Problem
from perfgate.scenarios.scenario import Scenario


def _sweep_ascends(scenario: Scenario) -> Iterator[Problem]:
    if scenario.workload is None:
        return
    sweep = scenario.workload.concurrency
    ordered = sorted(set(sweep))
    if list(sweep) != ordered:
        problem = "sweep names a point twice" if len(ordered) < len(sweep) else "sweep not sorted"
        yield Problem(("workload", "concurrency"), problem, list(sweep), f"{ordered}")


def _requests_are_given_once(scenario: Scenario) -> Iterator[Problem]:
    load = scenario.workload
    if load is None:
        return
    if load.requests is None and load.requests_per_concurrency is None:
        yield Problem(
            ("workload",),
            "number of requests missing",
            expected="requests_per_concurrency or requests",
        )
    elif load.requests is not None and load.requests_per_concurrency is not None:
        yield Problem(
            ("workload", "requests"),
            "number of requests given twice",
            f"requests {load.requests} and "
            f"requests_per_concurrency {load.requests_per_concurrency}",
            "one of them",
            "remove one; one of the defaults block by setting it to null",
        )


def _requests_reach_the_concurrency(scenario: Scenario) -> Iterator[Problem]:
    load = scenario.workload
    if load is not None and load.requests is not None and load.requests < max(load.concurrency):
        yield Problem(
            ("workload", "requests"),
            "fewer requests than concurrency",
            load.requests,
            f"at least {max(load.concurrency)}",
        )


def _synthetic_prompts_have_lengths(scenario: Scenario) -> Iterator[Problem]:
    load = scenario.workload
    if load is None or load.dataset != "synthetic":
        return
    for name in ("isl", "osl"):
        if getattr(load, name) is None:
            yield Problem(
                ("workload", name), "missing", expected="tokens, as the prompts are synthetic"
            )


def _requests_fit_the_sequence(scenario: Scenario) -> Iterator[Problem]:
    load, longest = scenario.workload, scenario.engine.settings.max_seq_len
    if load is None or longest is None or load.isl is None or load.osl is None:
        return
    if load.isl + load.osl > longest:
        yield Problem(
            ("engine", "settings", "max_seq_len"),
            "requests longer than max_seq_len",
            f"isl {load.isl} + osl {load.osl} = {load.isl + load.osl}, max_seq_len {longest}",
            f"max_seq_len of at least {load.isl + load.osl}",
        )


def _all_at_once_is_one_point(scenario: Scenario) -> Iterator[Problem]:
    """Without a cap every request is in flight, so the point's concurrency is their number."""
    load = scenario.workload
    if load is None or load.capped:
        return
    points = scenario.points()
    if len(points) != 1:
        yield Problem(
            ("workload", "concurrency"),
            "a load without a cap has one point",
            list(load.concurrency),
            "one concurrency, the number of requests",
        )
    elif points[0].requests != points[0].concurrency:
        yield Problem(
            ("workload", "concurrency"),
            "without a cap all requests are in flight at once",
            f"concurrency {points[0].concurrency}, {points[0].requests} requests",
            f"concurrency {points[0].requests}",
        )


def _counted_prompts_are_of_one_point(scenario: Scenario) -> Iterator[Problem]:
    load = scenario.workload
    if load is not None and load.input_tokens is not None and len(load.concurrency) > 1:
        yield Problem(
            ("workload", "input_tokens"),
            "the points of a sweep have prompts of their own",
            f"{load.input_tokens} tokens, {len(load.concurrency)} points",
            "a sweep of one point, or no input_tokens",
        )


WORKLOAD_RULES = (
    _sweep_ascends,
    _requests_are_given_once,
    _requests_reach_the_concurrency,
    _all_at_once_is_one_point,
    _synthetic_prompts_have_lengths,
    _requests_fit_the_sequence,
    _counted_prompts_are_of_one_point,
)
