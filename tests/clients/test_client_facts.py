"""What is told of a client's release, and of the dataset, beside a measurement."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO
from tables import each

from perfgate.clients import datasets
from perfgate.clients.base import Client, Target, same_release
from perfgate.clients.client_facts import client_facts, notes
from perfgate.clients.serving_clients import BenchmarkServing, SglangBench, VllmBench
from perfgate.core.measurement import Measurement
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.scenarios.scenario import Scenario

SHAREGPT = replace(
    SCENARIO.workload,
    client="vllm-bench",
    dataset="sharegpt",
    isl=None,
    osl=None,
    concurrency=(1000,),
    requests=1000,
    requests_per_concurrency=None,
    capped=False,
    client_version="0.11.0",
    input_tokens=219171,
)
LAB = replace(SCENARIO, workload=SHAREGPT)


def lab(**changes: Any) -> Scenario:
    return replace(SCENARIO, workload=replace(SHAREGPT, **changes))


def target(version: str, datasets: Path | None = None) -> Target:
    return Target(Endpoint("127.0.0.1", 8000, "m"), "m", Locations(datasets=datasets), version)


def told(
    scenario: Scenario = LAB,
    version: str = "0.11.0",
    tokens: int = 219171,
    client: Client | None = None,
    build: EngineBuild | None = None,
) -> dict[str, Any]:
    build = build or EngineBuild("vllm", "0.11.0", "a")
    measured = Measurement({}, {"input_tokens": tokens})
    return client_facts(client or VllmBench(), target(version), scenario, build, measured)


def test_a_run_as_documented_is_told_its_client_and_nothing_else() -> None:
    assert told() == {"client_version": "0.11.0"}
    assert told(version="0.11.0+cpu") == {"client_version": "0.11.0+cpu"}


GENERATED = lab(dataset="synthetic", isl=32000, osl=100, input_tokens=3199900)
# Another project's server has other releases.
ELSEWHERE = {"build": EngineBuild("sglang", "0.5.3", "a")}
MIXED = {"client": SglangBench(), "version": "0.5.3", "build": EngineBuild("sglang", "1", "")}


@each(
    ("given", "facts"),
    [
        (
            {"version": "0.10.2", **ELSEWHERE},
            {"client_differs": "vllm-bench 0.10.2 measured, the document's values are of 0.11.0"},
        ),
        (
            {"build": EngineBuild("vllm", "0.32.0", "a")},
            {"client_and_server_differ": "server 0.32.0: releases of vllm are mixed"},
        ),
        (
            {"scenario": lab(client_version=None), **MIXED},
            {"client_and_server_differ": "releases of sglang are mixed"},
        ),
        ({"tokens": 219170}, {"dataset_differs": "219170 input tokens, 219171 documented: other"}),
        # Generated prompts may be a few tokens off.
        ({"scenario": GENERATED, "tokens": 3199950}, {}),
        ({"scenario": GENERATED, "tokens": 3209900}, {"dataset_differs": "3209900 input tokens"}),
        # A client that counts by the server tells nothing of the dataset.
        (
            {"version": "0.32.0", "tokens": 231171, **ELSEWHERE},
            {"client_differs": "", "dataset_not_comparable": "compared with the 219171 documented"},
        ),
    ],
)
def test_what_is_otherwise_is_told(given: dict[str, Any], facts: dict[str, str]) -> None:
    found = told(**given)
    assert found.keys() - {"client_version"} == facts.keys()
    assert all(said in found[name] for name, said in facts.items())


@pytest.mark.parametrize(
    "scenario",
    [
        lab(input_tokens=None),
        lab(capped=True, concurrency=(1, 4), requests=None, requests_per_concurrency=5),
        replace(SCENARIO, workload=None),
    ],
)
def test_nothing_is_said_of_a_dataset_that_no_total_tells(scenario: Scenario) -> None:
    assert not {"dataset_differs", "dataset_not_comparable"} & told(scenario, tokens=1).keys()


@pytest.mark.parametrize(
    ("isl", "osl", "said"),
    [
        (49.0, 2048.0, "mean ISL 49 tokens, the scenario has 1024"),
        (1100.0, 1800.0, "mean OSL 1800 tokens, the scenario has 2048"),
        (930.0, 2200.0, None),
    ],
)
def test_real_prompts_are_as_long_as_asked_within_a_tenth(isl, osl, said) -> None:
    scenario = lab(dataset="real", isl=1024, osl=2048, input_tokens=None)
    measured = Measurement({}, {"isl": isl, "osl": osl})
    build = EngineBuild("tensorrt-llm", "1.0.0", "a")
    found = client_facts(VllmBench(), target("0.11.0"), scenario, build, measured)
    assert found.get("dataset_differs") == said


def test_what_nothing_tells_is_not_compared() -> None:
    build = EngineBuild("vllm", "0.11.0", "")
    found = client_facts(VllmBench(), target("0.11.0"), LAB, build, Measurement({}, {}))
    assert found == {"client_version": "0.11.0"}
    assert told(client=BenchmarkServing()) == {}, "it has the engine's release"
    assert same_release("unknown", "unknown")
    assert not same_release("unknown", "0.11.0")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


CUT = '[{"id": "a", "conversations": []}]'


@each(
    ("text", "scenario", "told"),
    [
        (CUT, LAB, f"34 bytes with SHA-256 {sha256(CUT)[:12]}…, not {sha256('[]')[:12]}… (a copy"),
        ("[{}]", lab(input_tokens=None), "is not ShareGPT V3"),  # no total is documented
        ("[]", LAB, "nothing"),
        ("[{}]", lab(dataset="synthetic", isl=128, osl=4, input_tokens=None), "nothing"),
    ],
)
def test_where_tokens_cannot_tell_the_file_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, scenario: Scenario, told: str
) -> None:
    """A cut copy that was closed again is another file."""
    monkeypatch.setattr(datasets, "SHAREGPT_SHA256", sha256("[]"))
    (tmp_path / datasets.SHAREGPT).write_text(text)
    measured = Measurement({}, {"input_tokens": 231171})
    place = target("0.32.0", tmp_path)  # whose tokens are the server's count
    build = EngineBuild("sglang", "0.5.3", "a")
    found = client_facts(VllmBench(), place, scenario, build, measured)
    assert told in str(found.get("dataset_differs", "nothing"))


def test_settings_that_a_report_does_not_show_are_said_once() -> None:
    silent = (["kv_cache_fraction"], ["kv_cache_fraction", "ep"])
    assert list(notes([Measurement({}, {"asked_not_reported": one}) for one in silent])) == [
        "the report does not show kv_cache_fraction, ep: that it was in force as asked is not "
        "established"
    ]
    assert not list(notes([Measurement({}, {"ep": 8})]))
