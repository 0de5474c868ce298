"""The documented scenarios together: pairs, claims, markers, and the page that lists them."""

import re
from dataclasses import fields, replace
from pathlib import Path

from documented_set import LAB, documented_suite
from tables import each

from perfgate.campaign.selection import measured_scenarios, selected_with, suite_tests
from perfgate.core.metrics import is_accuracy
from perfgate.judging.assembly.claims import ClaimProbe, claim_probes
from perfgate.judging.assembly.sweeps import sweep_probes
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.markers import markers_of
from perfgate.scenarios.probe import all_probes, load_probes
from perfgate.scenarios.scenario import EngineSettings, Scenario

ROOT = Path(__file__).parents[2]
SUITE = documented_suite()
SCENARIOS = {scenario.id: scenario for scenario in SUITE.scenarios}


@each(
    ("one", "other", "differing"),
    [
        ("b200-r1-fp4-chunked-context-{}", ("on", "off"), {"chunked_context"}),
        ("b200-r1-fp4-chunked-context-{}", ("small", "on"), {"max_num_tokens"}),
        ("h200-r1-fp8-chunked-context-{}", ("on", "off"), {"chunked_context"}),
        ("h200-r1-fp8-chunked-context-{}", ("small", "on"), {"max_num_tokens"}),
        ("b200-r1-0528-{}-serve", ("fp4", "fp8"), {"model", "moe_backend", "moe_max_num_tokens"}),
        ("b200-r1-0528-fp4-serve{}", ("", "-no-padding"), {"cuda_graphs.padding"}),
        ("b200-r1-0528-fp4-serve{}", ("-graphs-1024", ""), {"cuda_graphs.max_batch_size"}),
        ("b200-r1-0528-fp4-{}", ("serve", "gsm8k-bos"), {"add_special_tokens"}),
        ("b200-r1-fp4-kv-{}", ("fp16", "fp8"), {"kv_cache_dtype"}),
        ("h200-v3-fp8-deepgemm-{}", ("on", "off"), {"TRTLLM_DG_ENABLED"}),
        ("h200-v3-fp8-deepgemm-{}", ("nvcc", "on"), {"TRTLLM_DG_JIT_USE_NVCC"}),
        ("h200-v3-fp8-2node-deepgemm-{}", ("on", "off"), {"TRTLLM_DG_ENABLED"}),
        ("h200-v3-fp8-kv-{}", ("bf16", "fp8"), {"kv_cache_dtype"}),
        ("h200-v3-fp8-kv-{}", ("bf16", "fp8-checkpoint"), {"model"}),
    ],
)
def test_a_pair_differs_in_what_its_claim_is_about(
    one: str, other: tuple[str, str], differing: set[str]
) -> None:
    mine, theirs = (told(SCENARIOS[one.format(end)]) for end in other)
    one_side = {name for name in mine.keys() ^ theirs.keys() if name.isupper()}  # variables
    both = {name for name in mine.keys() & theirs.keys() if mine[name] != theirs[name]}
    assert one_side | both == differing


def told(scenario: Scenario) -> dict[str, object]:
    """What shapes its measurements; a load or an evaluation that one side lacks is none of it."""
    found: dict[str, object] = {"hardware": scenario.hardware, "model": scenario.model}
    settings = {f.name: getattr(scenario.engine.settings, f.name) for f in fields(EngineSettings)}
    graphs = settings.pop("cuda_graphs")
    found |= settings | {f"cuda_graphs.{f.name}": getattr(graphs, f.name) for f in fields(graphs)}
    found |= scenario.environment
    for task in scenario.accuracy:
        found |= {f.name: getattr(task, f.name) for f in fields(task)}
    if scenario.workload is not None:
        found["load"] = replace(scenario.workload, concurrency=())  # a claim names the point
    return found


@each("name", ["no-padding", "graphs-1024"])
def test_a_claims_point_is_not_the_first_on_either_side(name: str) -> None:
    """What answered nothing yet is cold, so the first point would compare cold with warm."""
    other = f"b200-r1-0528-fp4-serve-{name}"
    (claim,) = (one for one in SUITE.claims if other in (one.scenario, one.versus))
    for side in claim.sides:
        assert claim.concurrency in [p.concurrency for p in SCENARIOS[side].points()][2:]


def test_the_claims() -> None:
    told = {
        claim.id: (claim.scenario, claim.expect, claim.versus or claim.value, claim.margin)
        for claim in claims_of(SUITE.scenarios, SUITE.claims)
        if claim.source.document != LAB  # which test_documented_claims lists
    }
    b200, h200, v3 = "b200-r1-fp4-chunked-context", "h200-r1-fp8-chunked-context", "h200-v3-fp8"
    fp4, fp8 = "b200-r1-0528-fp4-serve", "b200-r1-0528-fp8-serve"
    bos, b200_kv = "b200-r1-0528-fp4-gsm8k-bos", "b200-r1-fp4-kv"
    fp8kv, fp16kv = "b200-r1-0528-fp4-fp8kv-max-throughput", "b200-r1-fp4-fp16kv-max-throughput"
    latency, bf16 = "b200-r1-fp4-min-latency", f"{v3}-kv-bf16"
    assert told == {
        f"{latency}-output-throughput-per-user-floor": (latency, "better", 250, 0),
        f"{fp8kv}-output-throughput-floor": (fp8kv, "better", 30_000, 0),
        f"{fp16kv}-output-throughput-floor": (fp16kv, "better", 30_000, 0),
        "b200-fp8-kv-raises-throughput": (fp8kv, "better", fp16kv, 0),
        "b200-chunked-context-lowers-tpot": (f"{b200}-on", "better", f"{b200}-off", 0),
        "b200-smaller-chunk-lowers-tpot": (f"{b200}-small", "better", f"{b200}-on", 0),
        "b200-smaller-chunk-costs-throughput": (f"{b200}-on", "not_worse", f"{b200}-small", 0.02),
        "h200-chunked-context-lowers-tpot": (f"{h200}-on", "better", f"{h200}-off", 0),
        "h200-smaller-chunk-lowers-tpot": (f"{h200}-small", "better", f"{h200}-on", 0),
        "h200-smaller-chunk-costs-throughput": (f"{h200}-on", "not_worse", f"{h200}-small", 0.02),
        "b200-fp4-beats-fp8-at-32": (fp4, "better", fp8, 0),
        "b200-fp4-beats-fp8-at-4096": (fp4, "better", fp8, 0),
        "b200-graph-padding-raises-throughput": (fp4, "better", f"{fp4}-no-padding", 0),
        "b200-graphs-up-to-the-largest-batch-cost-nothing": (
            f"{fp4}-graphs-1024", "not_worse", fp4, 0.02
        ),
        "b200-bos-costs-gsm8k-strict": (fp4, "better", bos, 0),
        "b200-bos-costs-gsm8k-flexible": (fp4, "better", bos, 0),
        "b200-fp8-kv-keeps-gsm8k-strict": (f"{b200_kv}-fp8", "not_worse", f"{b200_kv}-fp16", 0.02),
        "b200-fp8-kv-keeps-gsm8k-flexible": (
            f"{b200_kv}-fp8", "not_worse", f"{b200_kv}-fp16", 0.02
        ),
        "nvcc-raises-deepgemms-throughput": (
            f"{v3}-deepgemm-nvcc", "better", f"{v3}-deepgemm-on", 0
        ),
        "h200-fp8-kv-raises-throughput": (f"{v3}-kv-fp8", "better", bf16, 0),
        "deepgemm-raises-throughput": (f"{v3}-deepgemm-on", "better", f"{v3}-deepgemm-off", 0),
        "deepgemm-raises-throughput-on-two-nodes": (
            f"{v3}-2node-deepgemm-on", "better", f"{v3}-2node-deepgemm-off", 0
        ),
        "fp8-kv-keeps-gsm8k-strict": (f"{v3}-kv-fp8", "not_worse", bf16, 0.01),
        "fp8-kv-keeps-gsm8k-flexible": (f"{v3}-kv-fp8", "not_worse", bf16, 0.01),
        "fp8-kv-checkpoint-keeps-gsm8k-strict": (
            f"{v3}-kv-fp8-checkpoint", "not_worse", bf16, 0.01
        ),
        "fp8-kv-checkpoint-keeps-gsm8k-flexible": (
            f"{v3}-kv-fp8-checkpoint", "not_worse", bf16, 0.01
        ),
    }  # fmt: skip


def test_significant_and_meaningful_have_a_minimum_effect() -> None:
    assert {claim.id: claim.minimum_effect for claim in SUITE.claims if claim.minimum_effect} == {
        "b200-fp8-kv-raises-throughput": 0.05,
        "b200-graph-padding-raises-throughput": 0.05,
        "deepgemm-raises-throughput": 0.05,
        "deepgemm-raises-throughput-on-two-nodes": 0.05,
    }


FEATURES = {
    "mtp": {name for name, s in SCENARIOS.items() if s.engine.settings.mtp is not None},
    "chunked_context": {name for name in SCENARIOS if "chunked-context" in name},
    "deepgemm": {name for name in SCENARIOS if "deepgemm" in name},
    "kv_cache": {name for name in SCENARIOS if "-kv-" in name},
    "wide_ep": {"gb200-r1-0528-fp4-wide-ep-serve"},
    "explore": {name for name in SCENARIOS if name.endswith("explore")},
    "latency": {name for name in SCENARIOS if name.endswith("min-latency")},
    "smoke": {name for name, s in SCENARIOS.items() if s.smoke is not None},
    "accuracy": {name for name, s in SCENARIOS.items() if s.accuracy},
}


@each("marker", FEATURES)
def test_markers_select_what_they_name(marker: str) -> None:
    found = {name for name, s in SCENARIOS.items() if marker in markers_of(s)}
    assert found == FEATURES[marker]


def test_every_scenario_is_offline_or_served_and_has_its_day() -> None:
    for scenario in SCENARIOS.values():
        assert ("offline" in scenario.markers) != ("serving" in scenario.markers), scenario.id
        days = [day for day in ("nightly", "weekly") if day in scenario.markers]
        is_others = "lab" in scenario.markers and scenario.engine.name != "tensorrt-llm"
        assert len(days) == (0 if "explore" in scenario.markers or is_others else 1), scenario.id


CLAIMS = claim_probes(claims_of(SUITE.scenarios, SUITE.claims), SUITE.scenarios)
TESTS = suite_tests(SUITE.scenarios, CLAIMS)


@each("gpu", ["b200", "h200", "gb200"])
def test_a_kind_selects_the_tests_of_that_kind_and_no_other(gpu: str) -> None:
    def selected(expression: str) -> set[str]:
        return {test.id for test in selected_with(expression, TESTS, SUITE.markers)}

    of_claims = {claim.id: is_accuracy(claim.claim.metric) for claim in CLAIMS}
    kinds = {kind: selected(f"{gpu} and {kind}") for kind in ("smoke", "throughput", "accuracy")}
    assert selected(gpu) == set().union(*kinds.values())
    assert sum(map(len, kinds.values())) == len(selected(gpu)), "no test is of two kinds"
    for scenario in SUITE.scenarios:
        if gpu not in markers_of(scenario) or "explore" in scenario.markers:
            continue
        load = [*load_probes(scenario), *sweep_probes(scenario)]
        assert {one.id for one in load} <= kinds["throughput"]
        assert all(one.id in kinds[one.kind] for one in all_probes(scenario))
    claims = selected(f"{gpu} and claim")
    assert {name for name in claims if of_claims[name]} <= kinds["accuracy"]
    assert {name for name in claims if not of_claims[name]} <= kinds["throughput"]
    assert bool(claims) == (gpu != "gb200"), "no document compares results of GB200"


@each("when", ["nightly", "weekly"])
@each("gpu", ["b200", "h200", "gb200"])
def test_a_night_starts_one_engine_alone_and_has_both_sides_of_its_claims(
    gpu: str, when: str
) -> None:
    tests = selected_with(f"{gpu} and {when}", TESTS, SUITE.markers)
    engines = {SCENARIOS[name].engine.name for name in measured_scenarios(tests)}
    assert engines == {"tensorrt-llm"}
    if when == "nightly":
        own = {test.scenario.id for test in tests if not isinstance(test, ClaimProbe)}
        for claim in tests:
            if isinstance(claim, ClaimProbe):
                assert set(claim.claim.sides) <= own


# The page. ----------------------------------------------------------------------------------


def test_the_page_lists_every_scenario_under_its_document() -> None:
    page = (ROOT / "docs" / "reference" / "documented.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)[1:]
    told: dict[str, tuple[str, str]] = {}
    for document, text in zip(parts[::2], parts[1::2], strict=True):
        if document.startswith(("What is documented", "Where the documents")):
            continue
        table = text.partition("| section | scenarios |")[2].partition("|---|\n")[2]
        rows = table.partition("\n\n")[0]
        for section, names in re.findall(r"^\| ([^|]+) \| ([^|]+) \|", rows, re.MULTILINE):
            for name in re.findall(r"`([a-z0-9-]+)`", names):
                told[name] = (document, section)
    assert told == {
        name: (scenario.source.document, scenario.source.section)
        for name, scenario in SCENARIOS.items()
    }
