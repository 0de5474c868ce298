"""Output tokens counted twice: a length that was requested is none that was generated."""

from dataclasses import replace
from typing import Any

import pytest
from building import SCENARIO

from perfgate.clients.output_counts import count_facts, require_counted
from perfgate.core.errors import RunError

assert SCENARIO.workload is not None
WORKLOAD = replace(SCENARIO.workload, isl=64, osl=200)
ENDS = replace(WORKLOAD, ignore_eos=False)


def facts(reported: Any, encoded: Any, completed: int = 10) -> dict[str, Any]:
    return {
        "output_tokens": reported,
        "output_tokens_retokenized": encoded,
        "requests_completed": completed,
    }


@pytest.mark.parametrize("encoded", [2000, 1900, 2100, 1801])
def test_texts_encoded_again_are_a_few_percent_off(encoded: int) -> None:
    require_counted(facts(2000, encoded), ENDS)
    assert count_facts(facts(2000, encoded)) == {}


def test_special_tokens_after_an_ignored_eos_have_no_text() -> None:
    require_counted(facts(2000, 1500), WORKLOAD)


def test_a_server_s_own_count_may_be_far_off_the_text() -> None:
    require_counted(facts(1990, 1500), ENDS)


@pytest.mark.parametrize("workload", [WORKLOAD, replace(ENDS, osl=None, dataset="sharegpt")])
def test_less_than_half_is_refused_whatever_was_asked(workload: Any) -> None:
    with pytest.raises(RunError, match="2000 output tokens reported, 900 in the answers' text"):
        require_counted(facts(2000, 900), workload)


@pytest.mark.parametrize(
    ("reported", "encoded"), [(None, 5), (5, None), (0, 5), (True, 5), ("5", 5)]
)
def test_one_count_alone_says_nothing(reported: Any, encoded: Any) -> None:
    require_counted(facts(reported, encoded), ENDS)
    assert count_facts(facts(reported, encoded)) == {}
