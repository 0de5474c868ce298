"""Rules about the first answer: what a scenario says of it must be possible to look at."""

from collections.abc import Iterator

from perfgate.scenarios.problem import Problem
from perfgate.scenarios.scenario import DocumentedAnswer, Scenario

SERVED_SMOKE = "completion"  # the smoke client that asks the running server
_OF_A_SERVER = ("finish_reason", "prompt_tokens", "completion_tokens")


def _answers_are_to_the_prompts(scenario: Scenario) -> Iterator[Problem]:
    smoke = scenario.smoke
    if smoke is None:
        return
    told: set[str] = set()
    for position, answer in enumerate(smoke.answers):
        at = ("smoke", "answers", position, "prompt")
        if answer.prompt not in smoke.prompts:
            expected = "one of smoke.prompts: " + ", ".join(map(repr, smoke.prompts))
            yield Problem(at, "answer to a prompt that is not asked", repr(answer.prompt), expected)
        elif answer.prompt in told:
            yield Problem(at, "two answers to one prompt", repr(answer.prompt), "each prompt once")
        told.add(answer.prompt)


def _answers_say_what_can_be_seen(scenario: Scenario) -> Iterator[Problem]:
    smoke = scenario.smoke
    if smoke is None:
        return
    for position, answer in enumerate(smoke.answers):
        at = ("smoke", "answers", position)
        if answer == DocumentedAnswer(answer.prompt):
            yield Problem(
                at, "nothing said of the answer", expected="contains, texts, or what a server tells"
            )
        if answer.texts and scenario.source.engine_version is None:
            yield Problem(
                (*at, "texts"),
                "documented texts of no release",
                expected="source.engine_version",
                hint="name the release whose answer it is, or say what it contains at every one",
            )
        for name in _OF_A_SERVER:
            value = getattr(answer, name)
            if value is not None and smoke.client != SERVED_SMOKE:
                expected = f"nothing: {smoke.client} prints the text alone"
                yield Problem((*at, name), "only a server tells this", value, expected)
        most, tokens = smoke.max_tokens, answer.completion_tokens
        if most is not None and tokens is not None and tokens > most:
            yield Problem(
                (*at, "completion_tokens"),
                "more tokens than are requested",
                tokens,
                f"at most {most}, as smoke.max_tokens is",
            )


SMOKE_RULES = (_answers_are_to_the_prompts, _answers_say_what_can_be_seen)
