"""The record of an outcome."""

import json

from building import judgement, outcome
from plain_records import fields_of

from perfgate.core.errors import RunError
from perfgate.core.failures import FAILURES
from perfgate.core.plain import to_plain
from perfgate.core.verdict import Verdict


def test_a_record_holds_the_numbers_behind_the_verdict() -> None:
    record = json.loads(json.dumps(fields_of(outcome(injected=("a=1",), notes=("n",)))))
    assert record.pop("judgements") == json.loads(json.dumps([to_plain(judgement())]))
    judged, reported = record.pop("measured")
    assert (judged["metric"], judged["unit"]) == ("output_throughput", "tokens/s")
    assert judged["values"] == [1085.3, 1080.1]
    assert (reported["metric"], reported["unit"]) == ("ttft_mean_ms", "ms")
    assert round(reported["value"], 9) == 300
    build = {"name": "llama.cpp", "version": "1.3.0", "commit": "def456"}
    told = {
        "name": "small-serve-c4",
        "scenario": "small-serve",
        "probe": "c4",
        "verdict": "REGRESSION",
        "starts": 2,
        "compared_with": "llama.cpp 1.2.0 of 2026-11-05, accepted by Ada, 5 fresh starts",
        "folder": "/runs/one/small-serve/start-2-new/c4",
        "injected": ["a=1"],
        "notes": ["n"],
        "build": {**build, "image": "", "digest": ""},
    }
    texts = dict.fromkeys(("reason", "extra_options", "rerun", "resumed_from"), "")
    lists: dict[str, list[str]] = {
        name: [] for name in ("observed", "changed_questions", "controls", "settings", "documented")
    }
    nothing = dict.fromkeys(("error", "judge_input", "provenance"))
    assert record == {**told, **texts, **lists, **nothing, "synthetic": False}


def test_a_record_of_an_error_holds_evidence_and_next_step() -> None:
    error = RunError("oom", "the server ended", evidence=("CUDA out of memory",))
    record = fields_of(outcome(verdict=Verdict.ERROR, folder=None, error=error, synthetic=True))
    assert record["error"] == {
        "error_class": "oom",
        "message": "the server ended",
        "evidence": ["CUDA out of memory"],
        "next_step": FAILURES["oom"].next_step,
    }
    assert (record["verdict"], record["folder"], record["synthetic"]) == ("ERROR", None, True)
