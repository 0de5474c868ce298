"""Entries of --benchmark-json: the measured values, one for each fresh start, and no wall clock.

Sessions that write it are in test_road.py.
"""

from typing import Any

from building import outcome

from perfgate.runs.record import VerdictRecord
from perfgate.suite.result_files import entries

TEST = "perf_tests/test_serving.py::test_serving[small-serve-c4]"


def recorded(**changes: Any) -> VerdictRecord:
    return outcome(**changes).as_record(TEST)


def test_an_entry_for_each_metric_with_stats_over_the_fresh_starts() -> None:
    found = entries([recorded(synthetic=True)])
    assert not any(found), "no table of seconds takes one in"
    speed, wait = (one.as_dict() for one in found)
    assert speed["fullname"] == f"{TEST} output_throughput"
    assert speed["param"] == "small-serve-c4"
    assert speed["group"].endswith(": output_throughput [tokens/s], more is better")
    assert wait["group"].endswith("[ms], less is better")
    stats = speed["stats"]
    assert stats["data"] == [1085.3, 1080.1]
    assert (stats["min"], stats["max"], stats["rounds"]) == (1080.1, 1085.3, 2)
    assert round(stats["mean"], 9) == round(stats["median"], 9) == 1082.7
    assert "data" not in found[0].as_dict(include_data=False)["stats"]
    told = speed["extra_info"]
    assert (told["metric"], told["unit"], told["n"]) == ("output_throughput", "tokens/s", 2)
    assert (told["verdict"], told["synthetic"]) == ("REGRESSION", True)
    assert told["judgement"]["change"] == -0.123
    assert told["build"]["commit"] == "def456"
    assert told["compared_with"].startswith("llama.cpp 1.2.0")
    assert wait["stats"]["data"] == [250.0, 360.0]
    assert (wait["extra_info"]["unit"], wait["extra_info"]["direction"]) == ("ms", "lower")
    assert wait["extra_info"]["judgement"] is None


def test_without_numbers_there_is_no_entry() -> None:
    assert entries([recorded(measured=())]) == []
