"""A real vLLM through perfgate's own road when nothing is wrong: measured, told, nothing left."""

from pathlib import Path
from typing import Any

import pytest
from real_vllm import VLLM, checkout

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.usefixtures("vllm")]


@pytest.fixture(scope="module")
def vllm() -> None:
    VLLM.require()


def fewer(scenario: dict[str, Any], defaults: dict[str, Any]) -> None:
    """One concurrency, and some questions."""
    scenario["workload"]["concurrency"] = [4]
    for task in scenario.get("accuracy", ()):
        task["limit"] = 12


@pytest.mark.parametrize(
    ("name", "tests", "metrics"),
    [
        ("bench", 1, {"output_throughput", "ttft_p99_ms", "tpot_median_ms", "e2el_mean_ms"}),
        ("serve", 2, {"output_throughput", "ttft_p99_ms", "server_cpu_s_per_1k_tokens"}),
    ],
)
def test_a_start_is_measured_and_ends(
    name: str, tests: int, metrics: set[str], tmp_path: Path
) -> None:
    session = checkout(tmp_path / "checkout", fewer, name=name).run()
    assert session.left() == [], session.output
    measured = session.of("measurement")
    assert len(measured) == tests, session.output
    load = next(line for line in measured if "output_throughput" in line["metrics"])
    assert metrics <= load["metrics"].keys()
    assert load["facts"]["requests_completed"] == load["facts"]["requests_asked"]
    # Nothing was accepted, and not made true.
    assert load["facts"]["settings_in_force"]["kv_cache_reuse"] is False
    assert load["facts"]["settings_in_force"]["cuda_graphs"] == {"enabled": False}
    assert load["engine"]["version"].startswith("0.32.0")
    for line in measured:
        assert line["fingerprint"]["model"]
    verdicts = session.of("verdict")
    assert {line["verdict"] for line in verdicts} == {"NO_BASELINE"}, session.output
    # It was stopped: that is not a failure of its own.
    assert [line for line in verdicts if line["error"]] == []
    scores = [key for line in measured for key in line["metrics"] if key.startswith("accuracy:")]
    assert bool(scores) == (name == "serve")
