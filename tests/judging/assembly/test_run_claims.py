"""Claims: which measurements decide a documented statement, and when more are asked for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import building
import pytest

from perfgate.clients.client_facts import DATASET_DIFFERS
from perfgate.core.errors import InputError, RunError
from perfgate.core.measured import MeasuredBuild
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.claims import ClaimProbe, claim_outcome, claim_probes
from perfgate.judging.assembly.outcome import Outcome
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Claim, EngineSettings, Source

ON = replace(building.SCENARIO, id="chunked-on")
OFF = replace(building.SCENARIO, id="chunked-off")
FASTER = Claim(
    "chunked-lowers-tpot",
    "Chunked context lowers TPOT",
    Source("guide.md", "Chunked context"),
    "tpot_mean_ms",
    "chunked-on",
    "better",
    concurrency=4,
    versus="chunked-off",
)


class Bench:
    """Gives each scenario's values one start at a time."""

    def __init__(self, metric: str, **values: Sequence[float]) -> None:
        self.metric = metric
        self.values = {name.replace("_", "-"): list(given) for name, given in values.items()}
        self.starts = dict.fromkeys(self.values, 1)
        self.asked: list[str] = []

    def outcome(self, probe: Probe) -> Outcome:
        name = probe.scenario.id
        used = self.values[name][: self.starts[name]]
        measured = [Measurement({self.metric: value}) for value in used]
        return Outcome(probe, Verdict.NO_BASELINE, measurements=measured)

    def again(self, probe: Probe) -> bool:
        name = probe.scenario.id
        self.asked.append(name)
        if self.starts[name] >= len(self.values[name]):
            return False
        self.starts[name] += 1
        return True


def the(claim: Claim) -> ClaimProbe:
    (found,) = claim_probes([claim], [ON, OFF])
    return found


def test_a_claim_is_about_the_named_point_of_both_scenarios() -> None:
    claim = the(FASTER)
    assert [probe.id for probe in claim.probes] == ["chunked-on-c4", "chunked-off-c4"]
    assert claim.id == "chunked-lowers-tpot"


@pytest.mark.parametrize(
    "changes",
    [
        {"scenario": "nowhere"},
        {"versus": "nowhere"},
        {"concurrency": 64},
        {"metric": "accuracy:gsm8k:exact_match:strict-match"},
    ],
)
def test_a_claim_about_what_nobody_measures_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InputError, match="chunked-lowers-tpot"):
        the(replace(FASTER, **changes))  # type: ignore[arg-type]


def test_a_clear_difference_needs_three_starts_a_side_and_no_further() -> None:
    bench = Bench("tpot_mean_ms", chunked_on=[80.0] * 3, chunked_off=[100.0] * 3)
    found = claim_outcome(the(FASTER), bench.outcome, bench.again)
    assert found.verdict == Verdict.PASS
    assert bench.starts == {"chunked-on": 3, "chunked-off": 3}
    assert found.compared_with == "what guide.md, section Chunked context, says"
    assert found.reason == "Chunked context lowers TPOT"


def test_an_undecided_claim_asks_for_starts_until_none_is_left() -> None:
    bench = Bench("tpot_mean_ms", chunked_on=[100.0] * 3, chunked_off=[100.0] * 3)
    found = claim_outcome(the(FASTER), bench.outcome, bench.again)
    assert found.verdict == Verdict.INCONCLUSIVE
    assert bench.starts == {"chunked-on": 3, "chunked-off": 3}


def test_without_numbers_of_one_side_there_is_no_verdict() -> None:
    error = RunError("oom", "memory ran out")

    def outcome(probe: Probe) -> Outcome:
        if probe.scenario.id == "chunked-off":
            return Outcome(probe, Verdict.ERROR, error=error)
        return Outcome(probe, Verdict.PASS, measurements=[Measurement({"tpot_mean_ms": 1.0})])

    found = claim_outcome(the(FASTER), outcome, lambda _probe: False)
    assert (found.verdict, found.error) == (Verdict.ERROR, error)
    assert found.judgements == ()


def test_the_side_that_failed_tells_why_not_the_one_that_was_left_out_for_it() -> None:
    told = {
        "chunked-on": RunError("incomplete", "not measured: the starts are used up"),
        "chunked-off": RunError("oom", "memory ran out"),
    }
    for first, second in (("chunked-on", "chunked-off"), ("chunked-off", "chunked-on")):
        errors = {"chunked-on": told[first], "chunked-off": told[second]}

        def outcome(probe: Probe, errors: dict[str, RunError] = errors) -> Outcome:
            return Outcome(probe, Verdict.ERROR, error=errors[probe.scenario.id])

        found = claim_outcome(the(FASTER), outcome, lambda _probe: False)
        assert found.error is not None
        assert found.error.failure == "oom"


def test_a_documented_size_is_of_the_documents_prompts() -> None:
    told = {DATASET_DIFFERS: "219,171 input tokens documented, 100 measured"}

    def outcome(probe: Probe) -> Outcome:
        other = probe.scenario.id == "chunked-off"
        measured = [Measurement({"tpot_mean_ms": 10.0}, told if other else {})] * 3
        return Outcome(probe, Verdict.NOT_COMPARABLE, measurements=measured)

    sized = replace(FASTER, documented=-0.5, tolerance=0.1)
    found = claim_outcome(the(sized), outcome, lambda _probe: False)
    assert found.verdict == Verdict.NOT_COMPARABLE
    assert found.reason == (
        "chunked-off-c4: the dataset: 219,171 input tokens documented, 100 measured"
    )


def test_sides_of_another_release_than_the_documents_are_told() -> None:
    build = MeasuredBuild("llama.cpp", "1.3.0", "def456")
    documented = replace(ON, source=replace(ON.source, engine_version="1.0.0"))
    sized = replace(FASTER, documented=-0.5, tolerance=0.1)
    (claim,) = claim_probes([sized], [documented, OFF])

    def outcome(probe: Probe) -> Outcome:
        value = 5.0 if probe.scenario.id == "chunked-on" else 10.0
        measured = [Measurement({"tpot_mean_ms": value})] * 3
        return Outcome(probe, Verdict.NO_BASELINE, measurements=measured, build=build)

    found = claim_outcome(claim, outcome, lambda _probe: False)
    assert found.verdict == Verdict.PASS
    assert found.notes == ("the document measured chunked-on with llama.cpp 1.0.0, not 1.3.0",)


def test_a_side_without_an_undisturbed_start_decides_nothing() -> None:
    def outcome(probe: Probe) -> Outcome:
        return Outcome(probe, Verdict.INCONCLUSIVE, reason="disturbed, so not used: a neighbour")

    found = claim_outcome(the(FASTER), outcome, lambda _probe: False)
    assert (found.verdict, found.reason) == (
        Verdict.INCONCLUSIVE,
        "disturbed, so not used: a neighbour",
    )


SILENT = {"settings_not_established": {"kv_cache_dtype": "its log is cut"}}


@pytest.mark.parametrize(
    ("expect", "settings", "facts", "is_blind"),
    [
        ("not_worse", EngineSettings(kv_cache_dtype="fp8"), SILENT, True),
        ("better", EngineSettings(kv_cache_dtype="fp8"), SILENT, False),  # ignored, it would fail
        ("not_worse", EngineSettings(tp=8), SILENT, False),  # of both sides alike
        ("not_worse", EngineSettings(kv_cache_dtype="fp8"), {}, False),
    ],
)
def test_a_claim_of_no_loss_says_that_it_is_blind_to_an_ignored_option(
    expect: Any, settings: EngineSettings, facts: dict[str, Any], is_blind: bool
) -> None:
    on = replace(ON, engine=replace(ON.engine, settings=settings))
    (claim,) = claim_probes([replace(FASTER, expect=expect)], [on, OFF])

    def outcome(probe: Probe) -> Outcome:
        measured = Measurement({"tpot_mean_ms": 100.0}, facts if probe.scenario is on else {})
        return Outcome(probe, Verdict.NO_BASELINE, measurements=[measured] * 3)

    found = claim_outcome(claim, outcome, lambda _probe: False)
    notes = [one for one in found.notes if one.startswith("blind to an ignored option")]
    assert bool(notes) == is_blind
    assert all("kv_cache_dtype" in one and "its log is cut" in one for one in notes)
