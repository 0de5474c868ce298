"""Entries of --benchmark-json: the measured values, one for each fresh start, and no wall clock."""

import json
from typing import Any

from building import outcome

from perfgate.suite.benchmark_entries import entries

TEST = "perf_tests/test_serving.py::test_serving[small-serve-c4]"


def recorded(**changes: Any) -> dict[str, Any]:
    line = {"record": "verdict", "test": TEST, **outcome(**changes).as_record()}
    return dict(json.loads(json.dumps(line)))


def test_an_entry_for_each_metric_with_stats_over_the_fresh_starts() -> None:
    speed, wait = (one.as_dict() for one in entries([recorded()]))
    assert speed["name"] == "test_serving[small-serve-c4] output_throughput"
    assert speed["fullname"] == f"{TEST} output_throughput"
    assert speed["param"] == "small-serve-c4"
    stats = speed["stats"]
    assert stats["data"] == [1085.3, 1080.1]
    assert (stats["min"], stats["max"], stats["rounds"]) == (1080.1, 1085.3, 2)
    assert round(stats["mean"], 9) == round(stats["median"], 9) == 1082.7
    assert wait["stats"]["data"] == [250.0, 360.0]
    assert (wait["extra_info"]["unit"], wait["extra_info"]["direction"]) == ("ms", "lower")


def test_what_is_said_beside_the_values() -> None:
    speed, wait = (one.as_dict()["extra_info"] for one in entries([recorded(synthetic=True)]))
    assert (speed["metric"], speed["unit"], speed["n"]) == ("output_throughput", "tokens/s", 2)
    assert (speed["verdict"], speed["synthetic"], wait["synthetic"]) == ("REGRESSION", True, True)
    assert speed["judgement"]["change"] == -0.123
    assert wait["judgement"] is None
    assert speed["build"]["commit"] == "def456"
    assert speed["compared_with"].startswith("llama.cpp 1.2.0")


def test_single_values_can_be_left_out() -> None:
    (speed, _) = entries([recorded()])
    assert "data" not in speed.as_dict(include_data=False)["stats"]
    json.dumps(speed.as_dict())


def test_no_table_of_seconds_takes_an_entry_in() -> None:
    assert not any(entries([recorded()]))


def test_without_numbers_there_is_no_entry() -> None:
    assert entries([recorded(measured=())]) == []
    line = recorded()
    del line["measured"]  # of a run before they were kept
    assert entries([line]) == []
