import json

from building import outcome
from plain_records import fields_of

from perfgate.core.errors import RunError
from perfgate.core.failures import FAILURES
from perfgate.core.verdict import Verdict


def test_a_record_holds_the_numbers_behind_the_verdict() -> None:
    record = json.loads(json.dumps(fields_of(outcome(injected=("a=1",), notes=("n",)))))
    (one,) = record.pop("judgements")
    judged, reported = record.pop("measured")
    assert (judged["metric"], judged["unit"], judged["values"]) == (
        "output_throughput",
        "tokens/s",
        [1085.3, 1080.1],
    )
    assert (reported["metric"], reported["unit"]) == ("ttft_mean_ms", "ms")
    assert round(reported["value"], 9) == 300
    assert record == {
        "name": "small-serve-c4",
        "scenario": "small-serve",
        "probe": "c4",
        "verdict": "REGRESSION",
        "starts": 2,
        "compared_with": "llama.cpp 1.2.0 of 2026-11-05, accepted by Ada, 5 fresh starts",
        "reason": "",
        "error": None,
        "folder": "/runs/one/small-serve/start-2-new/c4",
        "injected": ["a=1"],
        "synthetic": False,
        "notes": ["n"],
        "observed": [],
        "changed_questions": [],
        "build": {
            "name": "llama.cpp",
            "version": "1.3.0",
            "commit": "def456",
            "image": "",
            "digest": "",
        },
        "controls": [],
        "extra_options": "",
        "settings": [],
        "judge_input": None,
        "provenance": None,
        "documented": [],
        "rerun": "",
        "resumed_from": "",
    }
    assert (one["metric"], one["verdict"]) == ("output_throughput", "REGRESSION")
    assert (one["baseline"], one["measured"]) == (1234.5, 1082.7)
    assert one["interval"] == [-0.14, -0.105]


def test_a_record_of_an_error_holds_evidence_and_next_step() -> None:
    failed = outcome(
        verdict=Verdict.ERROR,
        judgements=(),
        measurements=(),
        folder=None,
        error=RunError("oom", "the server ended", evidence=("CUDA out of memory",)),
        synthetic=True,
    )
    record = fields_of(failed)
    assert record["error"] == {
        "error_class": "oom",
        "message": "the server ended",
        "evidence": ["CUDA out of memory"],
        "next_step": FAILURES["oom"].next_step,
    }
    assert (record["verdict"], record["folder"], record["synthetic"]) == ("ERROR", None, True)
