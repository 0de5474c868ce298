"""What a scenario says of a first answer must be something that a run can look at."""

from dataclasses import replace

from building import SCENARIO
from tables import each

from perfgate.scenarios.rules import broken_rules
from perfgate.scenarios.scenario import (
    DocumentedAnswer,
    Scenario,
    Smoke,
    Source,
    scenario_from_plain,
    scenario_to_plain,
)

PROMPT = "Where is New York?"
RELEASED = Source("a document", "a section", engine_version="1.0.0")
SAID = DocumentedAnswer(PROMPT, ("in",), ("It is in the north.",), "length", 6, 16)


def asking(
    *answers: DocumentedAnswer, client: str = "completion", source: Source = RELEASED
) -> Scenario:
    smoke = Smoke(client, (PROMPT,), 16, answers)
    return replace(SCENARIO, source=source, smoke=smoke)


def test_all_that_can_be_said_of_an_answer_is_let_through_and_written_out_again() -> None:
    scenario = asking(SAID)
    assert broken_rules(scenario) == []
    plain = scenario_to_plain(scenario)
    plain.pop("content_hash")
    assert scenario_from_plain(plain).smoke == scenario.smoke


@each(
    ("scenario", "field", "words"),
    [
        (asking(replace(SAID, prompt="Where?")), "0.prompt", "not asked"),
        (asking(SAID, SAID), "1.prompt", "two answers to one prompt"),
        (asking(DocumentedAnswer(PROMPT)), "0", "nothing said"),
        (asking(SAID, source=replace(RELEASED, engine_version=None)), "0.texts", "no release"),
        (asking(SAID, client="trtllm-quickstart"), "0.finish_reason", "only a server"),
        (asking(SAID, client="trtllm-quickstart"), "0.prompt_tokens", "only a server"),
        (asking(SAID, client="trtllm-quickstart"), "0.completion_tokens", "only a server"),
        (asking(replace(SAID, completion_tokens=17)), "0.completion_tokens", "more tokens"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(scenario: Scenario, field: str, words: str) -> None:
    found = {".".join(map(str, p.path)): p.problem for p in broken_rules(scenario)}
    assert words in found[f"smoke.answers.{field}"]


def test_what_is_known_of_an_answer_changes_no_hash() -> None:
    assert asking(SAID).smoke_hash() == asking().smoke_hash()
    assert asking(SAID).content_hash() == asking().content_hash()
