"""Other prompts than the reference's: with both numbers, and no verdict from them."""

from dataclasses import replace
from typing import Any

import building
from tables import each

from perfgate.baselines import BaselineRun, Entry
from perfgate.clients.base import Target
from perfgate.clients.client_facts import client_facts
from perfgate.clients.vllm_bench import VllmBench
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json, Measurement
from perfgate.core.rule import Rule
from perfgate.core.verdict import Verdict
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.judging.assembly.judgement import Reference
from perfgate.judging.rules.probe import ProbeJudgement
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import GatePolicy, Scenario

LAB = 219_171  # input tokens of 1000 ShareGPT conversations
FACTS = {"content": "a"}
DOCUMENT = {"output_throughput": DocumentedValue(2621.05)}


def scenario(**load: Any) -> Scenario:
    """ShareGPT as the performance lab has it, unless `load` says otherwise."""
    assert building.SCENARIO.workload is not None
    changes = {
        "client": "vllm-bench",
        "client_version": "0.11.0",
        "dataset": "sharegpt",
        "isl": None,
        "osl": None,
        "concurrency": (1000,),
        "requests": 1000,
        "requests_per_concurrency": None,
        "capped": False,
        "input_tokens": LAB,
        **load,
    }
    return replace(
        building.SCENARIO,
        workload=replace(building.SCENARIO.workload, **changes),
        accuracy=(),
        gate=GatePolicy(("output_throughput",)),
    )


def measured(tokens: Json, throughput: float = 2600.0) -> Measurement:
    return Measurement({"output_throughput": throughput}, {"input_tokens": tokens})


def baseline(tokens: int, starts: int = 5) -> Entry:
    """One of fresh starts with so many input tokens, of which only rates are kept."""
    seconds, output = 76.59, 200_752
    rates = {
        "output_throughput": output / seconds,
        "total_token_throughput": (output + tokens) / seconds,
        "duration_s": seconds,
    }
    run = BaselineRun("r", "2026-01-01T00:00:00+00:00", rates)
    return Entry(FACTS, (run,) * starts)


# The document. ------------------------------------------------------------------------------


def told(tokens: int, throughput: float = 2600.0) -> Measurement:
    """A fresh start as a campaign keeps it: with what is told of its client's prompts."""
    plain, lab = measured(tokens, throughput), scenario()
    target = Target(Endpoint("127.0.0.1", 8000, "m"), "m", Locations(), "0.11.0")
    build = EngineBuild("vllm", "0.11.0", "a")
    facts = client_facts(VllmBench(), target, lab, build, plain)
    return Measurement(plain.metrics, {**plain.facts, **facts})


def judged(of: Scenario, reference: Reference, starts: list[Measurement]) -> ProbeJudgement:
    return building.judged(load_probes(of)[0], reference, starts, FACTS, Rule())


def test_the_documents_prompts_are_judged_by_its_values() -> None:
    assert judged(scenario(), Reference(None, DOCUMENT), [told(LAB)]).verdict == Verdict.PASS


@each("tokens", [LAB + 1, LAB - 1, 198_004])
def test_another_file_is_not_comparable_with_the_document(tokens: int) -> None:
    """However fast or slow it was: a regression and an improvement would both be of the prompts."""
    for throughput in (100.0, 2621.0, 9000.0):
        starts = [told(LAB), told(tokens, throughput)]
        found = judged(scenario(), Reference(None, DOCUMENT), starts)
        assert found.verdict == Verdict.NOT_COMPARABLE
        assert found.reason.startswith(f"the dataset: {tokens} input tokens, {LAB} documented: ")


def test_beside_a_baseline_the_document_is_not_compared_with_and_it_is_said() -> None:
    note = "not compared with the document, which measured other prompts"
    for tokens, gaps, notes in ((LAB, 1, ()), (198_004, 0, (note,))):
        starts = [told(tokens, 200_752 / 76.59)] * 2
        found = judged(scenario(), Reference(baseline(tokens), DOCUMENT), starts)
        assert found.verdict == Verdict.PASS
        gap = [note for one in found.judgements for note in one.notes if "documented: " in note]
        assert len(gap) == gaps
        assert found.notes == notes


# A baseline. --------------------------------------------------------------------------------

SHAREGPT = scenario(input_tokens=None)
GENERATED = scenario(dataset="synthetic", isl=219, osl=200, input_tokens=None)
BARE = Entry(FACTS, (BaselineRun("r", "2026-01-01T00:00:00+00:00", {"output_throughput": 2600.0}),))


@each(
    "of, entry, tokens, reason",
    [
        (SHAREGPT, baseline(LAB), 198_004, "measured 198004, baseline 219171"),
        (SHAREGPT, baseline(LAB), LAB, ""),
        # Rates that give no sum, a client that does not count, prompts that are generated.
        (SHAREGPT, BARE, 1, ""),
        (SHAREGPT, baseline(LAB), None, ""),
        (GENERATED, baseline(LAB), 1, ""),
    ],
)
def test_another_file_than_the_baselines_is_not_comparable(
    of: Scenario, entry: Entry, tokens: Json, reason: str
) -> None:
    """A baseline keeps no counts: the sum of its prompts follows from its rates."""
    found = judged(of, Reference(entry), [measured(tokens)] * 2)
    assert (found.verdict == Verdict.NOT_COMPARABLE) == bool(reason)
    assert reason in found.reason
