"""Other prompts than the reference's: with both numbers, and no verdict from them."""

from dataclasses import replace

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
from perfgate.judging.assembly.judge_input import ProbeJudgement
from perfgate.judging.assembly.judgement import Reference
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import GatePolicy, Scenario, Workload

LAB = 219_171  # input tokens of 1000 ShareGPT conversations
FACTS = {"content": "a"}
SECONDS, OUTPUT = 76.59, 200_752
DOCUMENT = {"output_throughput": DocumentedValue(OUTPUT / SECONDS)}


def scenario(load: Workload) -> Scenario:
    gate = GatePolicy(("output_throughput",))
    return replace(building.SCENARIO, workload=load, accuracy=(), gate=gate)


SHAREGPT = scenario(
    Workload(
        client="vllm-bench",
        client_version="0.11.0",
        dataset="sharegpt",
        isl=None,
        osl=None,
        concurrency=(1000,),
        requests=1000,
        capped=False,
        seed=20,
    )
)
assert SHAREGPT.workload is not None
DOCUMENTED = scenario(replace(SHAREGPT.workload, input_tokens=LAB))
GENERATED = scenario(replace(SHAREGPT.workload, dataset="synthetic", isl=219, osl=200))


def measured(tokens: Json, throughput: float = OUTPUT / SECONDS) -> Measurement:
    """A fresh start as a campaign keeps it: with what is told of its client's prompts."""
    plain = Measurement({"output_throughput": throughput}, {"input_tokens": tokens})
    target = Target(Endpoint("127.0.0.1", 8000, "m"), "m", Locations(), "0.11.0")
    build = EngineBuild("vllm", "0.11.0", "a")
    facts = client_facts(VllmBench(), target, DOCUMENTED, build, plain)
    return replace(plain, facts={**plain.facts, **facts})


def entry(**rates: float) -> Entry:
    """A baseline, of which only rates are kept."""
    run = BaselineRun(
        "r", "2026-01-01T00:00:00+00:00", {"output_throughput": OUTPUT / SECONDS, **rates}
    )
    return Entry(FACTS, (run,) * 5)


def baseline(tokens: int) -> Entry:
    """One of fresh starts with so many input tokens."""
    return entry(total_token_throughput=(OUTPUT + tokens) / SECONDS, duration_s=SECONDS)


def judged(of: Scenario, reference: Reference, *starts: Measurement) -> ProbeJudgement:
    return building.judged(load_probes(of)[0], reference, starts, FACTS, Rule())


@each("tokens", [LAB, LAB + 1, LAB - 1, 198_004])
def test_another_file_is_not_comparable_with_the_document(tokens: int) -> None:
    """However fast or slow it was: a regression and an improvement would both be of the prompts."""
    for speed in (2621.0,) if tokens == LAB else (100.0, 2621.0, 9000.0):
        starts = [measured(LAB), measured(tokens, speed)]
        found = judged(DOCUMENTED, Reference(None, DOCUMENT), *starts)
        reason = f"the dataset: {tokens} input tokens, {LAB} documented: "
        differs = (found.verdict == Verdict.NOT_COMPARABLE, found.reason.startswith(reason))
        assert differs == ((False, False) if tokens == LAB else (True, True))
        assert tokens != LAB or found.verdict == Verdict.PASS


def test_beside_a_baseline_the_document_is_not_compared_with_and_it_is_said() -> None:
    note = "not compared with the document, which measured other prompts"
    for tokens, gaps, notes in ((LAB, 1, ()), (198_004, 0, (note,))):
        found = judged(DOCUMENTED, Reference(baseline(tokens), DOCUMENT), *[measured(tokens)] * 2)
        assert (found.verdict, found.notes) == (Verdict.PASS, notes)
        told = [note for one in found.judgements for note in one.notes if "documented: " in note]
        assert len(told) == gaps


@each(
    "of, before, tokens, reason",
    [
        (SHAREGPT, baseline(LAB), 198_004, "measured 198004, baseline 219171"),
        (SHAREGPT, baseline(LAB), LAB, ""),
        # Rates that give no sum, a client that does not count, prompts that are generated.
        (SHAREGPT, entry(), 1, ""),
        (SHAREGPT, baseline(LAB), None, ""),
        (GENERATED, baseline(LAB), 1, ""),
    ],
)
def test_another_file_than_the_baselines_is_not_comparable(
    of: Scenario, before: Entry, tokens: Json, reason: str
) -> None:
    """A baseline keeps no counts: the sum of its prompts follows from its rates."""
    start = Measurement({"output_throughput": 2600.0}, {"input_tokens": tokens})
    found = judged(of, Reference(before), start, start)
    assert (found.verdict == Verdict.NOT_COMPARABLE) == bool(reason)
    assert reason in found.reason
