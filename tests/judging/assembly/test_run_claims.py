"""Claims: which measurements decide a documented statement, and when more are asked for."""

from dataclasses import replace
from typing import Any

import building
from refusals import refused
from tables import each

from perfgate.clients.client_facts import DATASET_DIFFERS
from perfgate.core.errors import RunError
from perfgate.core.measurement import MeasuredBuild, Measurement
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.claims import ClaimProbe, claim_outcome, claim_probes
from perfgate.judging.assembly.judge_input import Outcome
from perfgate.scenarios.scenario import Claim, EngineSettings, Source

ON, OFF = (replace(building.SCENARIO, id=name) for name in ("chunked-on", "chunked-off"))
TITLE, TPOT = "Chunked context lowers TPOT", "tpot_mean_ms"
FASTER = Claim("chunked-lowers-tpot", TITLE, Source("guide.md", "Chunked context"), TPOT, ON.id,
               "better", concurrency=4, versus=OFF.id)  # fmt: skip
SIZED = replace(FASTER, documented=-0.5, tolerance=0.1)
OPEN = Verdict.INCONCLUSIVE
Fields = dict[str, Any]


def the(claim: Claim, on: Any = ON) -> ClaimProbe:
    (found,) = claim_probes([claim], [on, OFF])
    return found


@each(
    "changes",
    [{"scenario": "nowhere"}, {"versus": "nowhere"}, {"concurrency": 64},
     {"metric": "accuracy:gsm8k:exact_match:strict-match"}],
)  # fmt: skip
def test_a_claim_about_what_nobody_measures_is_refused(changes) -> None:
    refused(the, replace(FASTER, **changes), match="chunked-lowers-tpot")


@each(
    "value, count, verdict, is_open",
    [(80.0, 3, Verdict.PASS, False), (100.0, 3, OPEN, True), (80.0, 1, OPEN, True)],
)
def test_it_says_whether_it_needs_more_starts(value, count, verdict, is_open) -> None:
    claim = the(FASTER)
    assert [probe.id for probe in claim.probes] == ["chunked-on-c4", "chunked-off-c4"]
    found = became(claim, starts(value, count=count), starts(100.0, count=count))
    assert (found.verdict, found.judgements[0].needs_more_runs) == (verdict, is_open)
    assert found.compared_with == "what guide.md, section Chunked context, says"
    assert found.reason == TITLE


def became(claim: ClaimProbe, on: Fields, off: Fields) -> Outcome:
    """What becomes of a claim by fields of the outcomes of its sides."""
    fields = (on if probe.scenario.id == ON.id else off for probe in claim.probes)
    ends = {
        probe: Outcome(probe, **{"verdict": Verdict.NO_BASELINE, **one})
        for probe, one in zip(claim.probes, fields, strict=True)
    }
    return claim_outcome(claim, ends, {})


def starts(value: float, facts: Fields | None = None, count: int = 3, **fields: Any) -> Fields:
    return {"measurements": [Measurement({TPOT: value}, facts or {})] * count, **fields}


OOM: Fields = {"verdict": Verdict.ERROR, "error": RunError("oom", "memory ran out")}
LEFT_OUT = {**OOM, "error": RunError("incomplete", "not measured: the starts are used up")}


@each("on, off", [(starts(1.0), OOM), (LEFT_OUT, OOM), (OOM, LEFT_OUT)])
def test_a_side_that_failed_is_the_cause_and_not_the_one_left_out_for_it(on, off) -> None:
    found = became(the(FASTER), on, off)
    assert (found.verdict, found.error, found.judgements) == (Verdict.ERROR, OOM["error"], ())


COUNTS = "219,171 input tokens documented, 100 measured"
OTHER_PROMPTS = starts(10.0, {DATASET_DIFFERS: COUNTS})
DISTURBED = {"verdict": OPEN, "reason": "disturbed, so not used: a neighbour"}


@each(
    "claim, off, verdict, reason",
    [
        (SIZED, OTHER_PROMPTS, Verdict.NOT_COMPARABLE, f"chunked-off-c4: the dataset: {COUNTS}"),
        (FASTER, OTHER_PROMPTS, OPEN, TITLE),
        (FASTER, DISTURBED, OPEN, DISTURBED["reason"]),
    ],
)
def test_other_prompts_and_disturbed_starts_decide_nothing(claim, off, verdict, reason) -> None:
    found = became(the(claim), starts(10.0), off)
    assert (found.verdict, found.reason) == (verdict, reason)


def test_sides_of_another_release_than_the_documents_are_told() -> None:
    build = MeasuredBuild("llama.cpp", "1.3.0", "def456")
    claim = the(SIZED, replace(ON, source=replace(ON.source, engine_version="1.0.0")))
    found = became(claim, starts(5.0, build=build), starts(10.0, build=build))
    assert found.verdict == Verdict.PASS
    assert found.notes == ("the document measured chunked-on with llama.cpp 1.0.0, not 1.3.0",)


SILENT = {"settings_not_established": {"kv_cache_dtype": "its log is cut"}}
FP8 = EngineSettings(kv_cache_dtype="fp8")


@each(
    "expect, settings, facts, is_blind",
    [
        ("not_worse", FP8, SILENT, True),
        ("better", FP8, SILENT, False),  # ignored, it would fail
        ("not_worse", EngineSettings(tp=8), SILENT, False),  # of both sides alike
        ("not_worse", FP8, {}, False),
    ],
)
def test_a_claim_of_no_loss_says_that_it_is_blind(expect, settings, facts, is_blind) -> None:
    """To an option that is ignored."""
    on = replace(ON, engine=replace(ON.engine, settings=settings))
    found = became(the(replace(FASTER, expect=expect), on), starts(100.0, facts), starts(100.0))
    notes = [one for one in found.notes if one.startswith("blind to an ignored option")]
    assert bool(notes) == is_blind
    assert all("kv_cache_dtype" in one and "its log is cut" in one for one in notes)
