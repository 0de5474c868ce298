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
from perfgate.clients.benchmark_serving import BenchmarkServing
from perfgate.clients.client_facts import client_facts
from perfgate.clients.sglang_bench import SglangBench
from perfgate.clients.vllm_bench import VllmBench
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.scenarios.scenario import Scenario

assert SCENARIO.workload is not None
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


SYNTHETIC = lab(dataset="synthetic", isl=32000, osl=100, input_tokens=3199900)
SWEEP = lab(capped=True, concurrency=(1, 4), requests=None, requests_per_concurrency=5)
AS_IT_IS = {"client_version": "0.11.0"}


@each(
    ("asked", "facts"),
    [
        ({}, AS_IT_IS),
        ({"version": "0.11.0+cpu"}, {"client_version": "0.11.0+cpu"}),
        (
            # Another project's server has other releases.
            {"version": "0.10.2", "build": EngineBuild("sglang", "0.5.3", "a")},
            {
                "client_version": "0.10.2",
                "client_differs": "vllm-bench 0.10.2 measured, the document's values are of 0.11.0",
            },
        ),
        (
            {"build": EngineBuild("vllm", "0.32.0", "a")},
            {
                **AS_IT_IS,
                "client_and_server_differ": "client 0.11.0, server 0.32.0: releases of vllm are",
            },
        ),
        (
            {
                **{"scenario": lab(client_version=None), "version": "0.5.3"},
                **{"client": SglangBench(), "build": EngineBuild("sglang", "1", "")},
            },
            {"client_version": "0.5.3", "client_and_server_differ": "releases of sglang are mixed"},
        ),
        # Another file of conversations; generated prompts may be a few tokens off.
        ({"tokens": 219170}, {**AS_IT_IS, "dataset_differs": "219170 input tokens, 219171 doc"}),
        ({"scenario": SYNTHETIC, "tokens": 3199950}, AS_IT_IS),
        ({"scenario": SYNTHETIC, "tokens": 3209900}, {**AS_IT_IS, "dataset_differs": "3209900"}),
        (
            {"version": "0.32.0", "tokens": 231171, "build": EngineBuild("vllm", "0.32.0", "a")},
            {
                "client_version": "0.32.0",
                "client_differs": "vllm-bench 0.32.0 measured",
                "dataset_not_comparable": "cannot be compared with the 219171 documented",
            },
        ),
        # No total tells anything of the dataset; a client of the engine has the engine's release.
        ({"scenario": lab(input_tokens=None), "tokens": 1}, AS_IT_IS),
        ({"scenario": SWEEP, "tokens": 1}, AS_IT_IS),
        ({"scenario": replace(SCENARIO, workload=None), "tokens": 1}, {}),
        ({"client": BenchmarkServing()}, {}),
    ],
)
def test_what_is_told_of_client_and_dataset(asked: dict[str, Any], facts: dict[str, str]) -> None:
    found = told(**asked)
    assert found.keys() == facts.keys()
    assert all(part in found[fact] for fact, part in facts.items()), found


@pytest.mark.parametrize(
    ("isl", "osl", "said"),
    [
        (49.0, 2048.0, "mean ISL 49 tokens, the scenario has 1024"),
        (1100.0, 1800.0, "mean OSL 1800 tokens, the scenario has 2048"),
        (930.0, 2200.0, None),
    ],
)
def test_real_prompts_are_as_long_as_asked_within_a_tenth(
    isl: float, osl: float, said: str | None
) -> None:
    scenario = lab(dataset="real", isl=1024, osl=2048, input_tokens=None)
    measured = Measurement({}, {"isl": isl, "osl": osl})
    build = EngineBuild("tensorrt-llm", "1.0.0", "a")
    found = client_facts(VllmBench(), target("0.11.0"), scenario, build, measured)
    assert found.get("dataset_differs") == said


def test_what_nothing_tells_is_not_compared() -> None:
    build = EngineBuild("vllm", "0.11.0", "")
    found = client_facts(VllmBench(), target("0.11.0"), LAB, build, Measurement({}, {}))
    assert found == {"client_version": "0.11.0"}
    assert same_release("unknown", "unknown")
    assert not same_release("unknown", "0.11.0")


class TestFileOfConversations:
    """Where tokens cannot tell, the file does: a cut copy that was closed again is another."""

    SERVER_COUNTS = "0.32.0"

    def told(self, folder: Path, scenario: Scenario = LAB) -> dict[str, Any]:
        measured = Measurement({}, {"input_tokens": 231171})
        build = EngineBuild("sglang", "0.5.3", "a")
        place = target(self.SERVER_COUNTS, folder)
        return client_facts(VllmBench(), place, scenario, build, measured)

    def test_another_file_of_that_name(self, tmp_path: Path) -> None:
        (tmp_path / datasets.SHAREGPT).write_text('[{"id": "a", "conversations": []}]')
        found = self.told(tmp_path)["dataset_differs"]
        assert found.startswith(f"{datasets.SHAREGPT} is not ShareGPT V3: 34 bytes")
        assert "35f0e213ce09" in found

    def test_the_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / datasets.SHAREGPT).write_text("[]")
        whole = hashlib.sha256(b"[]").hexdigest()
        monkeypatch.setattr(datasets, "SHAREGPT_SHA256", whole)
        assert "dataset_differs" not in self.told(tmp_path)

    def test_no_total_is_documented(self, tmp_path: Path) -> None:
        (tmp_path / datasets.SHAREGPT).write_text("[{}]")
        assert (
            "is not ShareGPT V3" in self.told(tmp_path, lab(input_tokens=None))["dataset_differs"]
        )

    def test_generated_prompts_have_no_file(self, tmp_path: Path) -> None:
        (tmp_path / datasets.SHAREGPT).write_text("[{}]")
        synthetic = lab(dataset="synthetic", isl=128, osl=4, input_tokens=None)
        assert "dataset_differs" not in self.told(tmp_path, synthetic)
