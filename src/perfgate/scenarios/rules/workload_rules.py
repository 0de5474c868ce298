"""Rules about the load and the first answer: numbers of requests, lengths, what can be seen."""

from collections.abc import Iterator

from perfgate.scenarios.scenario import SERVED_SMOKE, DocumentedAnswer, Scenario, Smoke, Workload
from perfgate.scenarios.yaml_document import Keys, Problem


def _load_is_sound(scenario: Scenario) -> Iterator[Problem]:
    if scenario.workload is not None:
        yield from _points(scenario, scenario.workload)
        yield from _requests(scenario.workload)
        yield from _lengths(scenario.workload, scenario.engine.settings.max_seq_len)


def _points(scenario: Scenario, load: Workload) -> Iterator[Problem]:
    sweep, ordered = list(load.concurrency), sorted(set(load.concurrency))
    path = ("workload", "concurrency")
    if sweep != ordered:
        problem = "sweep names a point twice" if len(ordered) < len(sweep) else "sweep not sorted"
        yield Problem(path, problem, sweep, f"{ordered}")
    if load.input_tokens is not None and len(sweep) > 1:
        problem = "the points of a sweep have prompts of their own"
        found = f"{load.input_tokens} tokens, {len(sweep)} points"
        expected = "a sweep of one point, or no input_tokens"
        yield Problem(("workload", "input_tokens"), problem, found, expected)
    if load.capped:
        return
    requests = [point.requests for point in scenario.points()]
    if len(sweep) != 1:
        expected = "one concurrency, the number of requests"
        yield Problem(path, "a load without a cap has one point", sweep, expected)
    elif requests != sweep:
        problem = "without a cap all requests are in flight at once"
        found = f"concurrency {sweep[0]}, {requests[0]} requests"
        yield Problem(path, problem, found, f"concurrency {requests[0]}")


def _requests(load: Workload) -> Iterator[Problem]:
    path, each = ("workload", "requests"), load.requests_per_concurrency
    if load.requests is None and each is None:
        expected = "requests_per_concurrency or requests"
        yield Problem(("workload",), "number of requests missing", expected=expected)
    if load.requests is None:
        return
    if each is not None:
        found = f"requests {load.requests} and requests_per_concurrency {each}"
        hint = "remove one; one of the defaults block by setting it to null"
        yield Problem(path, "number of requests given twice", found, "one of them", hint)
    if load.requests < max(load.concurrency):
        expected = f"at least {max(load.concurrency)}"
        yield Problem(path, "fewer requests than concurrency", load.requests, expected)


def _lengths(load: Workload, longest: int | None) -> Iterator[Problem]:
    lengths = {"isl": load.isl, "osl": load.osl}
    for name, tokens in lengths.items():
        if load.dataset == "synthetic" and tokens is None:
            expected = "tokens, as the prompts are synthetic"
            yield Problem(("workload", name), "missing", expected=expected)
    total = (load.isl or 0) + (load.osl or 0)
    if longest is not None and load.isl and load.osl and total > longest:
        found = f"isl {load.isl} + osl {load.osl} = {total}, max_seq_len {longest}"
        path, expected = ("engine", "settings", "max_seq_len"), f"max_seq_len of at least {total}"
        yield Problem(path, "requests longer than max_seq_len", found, expected)


def _answers_can_be_looked_at(scenario: Scenario) -> Iterator[Problem]:
    if scenario.smoke is None:
        return
    told: set[str] = set()
    for position, answer in enumerate(scenario.smoke.answers):
        at, prompt = ("smoke", "answers", position), repr(answer.prompt)
        if answer.prompt not in scenario.smoke.prompts:
            expected = "one of smoke.prompts: " + ", ".join(map(repr, scenario.smoke.prompts))
            yield Problem((*at, "prompt"), "answer to a prompt that is not asked", prompt, expected)
        elif answer.prompt in told:
            yield Problem((*at, "prompt"), "two answers to one prompt", prompt, "each prompt once")
        told.add(answer.prompt)
        if answer == DocumentedAnswer(answer.prompt):
            expected = "contains, texts, or what a server tells"
            yield Problem(at, "nothing said of the answer", expected=expected)
        if answer.texts and scenario.source.engine_version is None:
            expected = "source.engine_version"
            hint = "name the release whose answer it is, or say what it contains at every one"
            yield Problem((*at, "texts"), "documented texts of no release", None, expected, hint)
        yield from _of_a_server(scenario.smoke, answer, at)


def _of_a_server(smoke: Smoke, answer: DocumentedAnswer, at: Keys) -> Iterator[Problem]:
    for name in ("finish_reason", "prompt_tokens", "completion_tokens"):
        value = getattr(answer, name)
        if value is not None and smoke.client != SERVED_SMOKE:
            expected = f"nothing: {smoke.client} prints the text alone"
            yield Problem((*at, name), "only a server tells this", value, expected)
    most, tokens = smoke.max_tokens, answer.completion_tokens
    if most is not None and tokens is not None and tokens > most:
        path, expected = (*at, "completion_tokens"), f"at most {most}, as smoke.max_tokens is"
        yield Problem(path, "more tokens than are requested", tokens, expected)


WORKLOAD_RULES = (_load_is_sound, _answers_can_be_looked_at)
