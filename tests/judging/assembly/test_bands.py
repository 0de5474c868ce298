"""Bands: which number counts for a metric of a scenario, and where it comes from."""

from dataclasses import replace

import building
import pytest
from tables import each

from perfgate.judging.assembly.bands import gating_bands, resolve_band
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.scenario import Scenario

SPEED, TTFT, SUMS = "output_throughput", "ttft_mean_ms", building.SUMS
BARE = DocumentedValue(100.0)


def on(nodes: int = 1, **bands: float) -> Scenario:
    made = building.SCENARIO
    hardware, gate = replace(made.hardware, nodes=nodes), replace(made.gate, bands=bands)
    return replace(made, hardware=hardware, gate=gate)


@each(
    "made, metric, value, loss, source, text",
    [
        (on(), SPEED, None, 0.02, "family", "2.0 % family throughput"),
        (on(2), SPEED, None, 0.06, "nodes", "6.0 % family throughput, several nodes"),
        (on(output_throughput=0.03), SPEED, None, 0.03, "scenario", "3.0 % scenario"),
        (on(2, output_throughput=0.03), SPEED, None, 0.03, "scenario", ""),
        # no other default is known on several nodes
        (on(2), TTFT, None, 0.15, "family", ""),
        (on(), "ttft_p99_ms", None, None, "family", "report only"),
        (on(), SPEED, replace(BARE, tolerance=0.25), 0.25, "document", ""),
        (on(output_throughput=0.3), SPEED, replace(BARE, tolerance=0.25), 0.25, "document", ""),
        # a documented speed is of another machine: 10 % at least
        (on(), SPEED, BARE, 0.10, "document", ""),
        (on(), SPEED, replace(BARE, tolerance=0.05), 0.10, "document", ""),
        (on(output_throughput=0.03), SPEED, BARE, 0.10, "document", ""),
        (on(output_throughput=0.12), SPEED, BARE, 0.12, "scenario", ""),
        (on(), TTFT, BARE, 0.15, "family", ""),
        (on(), SUMS, None, 0.02, "family", "2.0 points family accuracy"),
        (on(), SUMS, DocumentedValue(0.95), 0.02, "family", ""),
        (on(), SUMS, DocumentedValue(0.95, tolerance=0.01), 0.01, "document", ""),
        (on(**{SUMS: 0.05}), SUMS, None, 0.05, "scenario", ""),
    ],
)
def test_the_band_and_its_source(
    made: Scenario,
    metric: str,
    value: DocumentedValue | None,
    loss: float | None,
    source: str,
    text: str,
) -> None:
    found = resolve_band(metric, made, value)
    assert (found.loss, found.source) == (loss, source)
    assert found.against == ("baseline" if value is None else "documented")
    assert not text or found.describe() == text


@each("reference, against", [("stored", ["baseline", "documented"]), ("self", ["baseline"])])
def test_every_gating_metric_has_its_band_against_what_it_can_be_compared_with(
    reference: str, against: list[str]
) -> None:
    """A machine that measures itself compares no speed with a document."""
    made = replace(on(), gate=replace(on().gate, reference=reference))
    found = gating_bands(made, {SPEED: BARE, SUMS: DocumentedValue(0.9), TTFT: BARE})
    assert list(found) == list(made.gate.metrics)
    assert [one.against for one in found[SPEED]] == against
    assert [one.against for one in found["tpot_mean_ms"]] == ["baseline"]
    assert [one.loss for one in found[SUMS]] == pytest.approx([0.02, 0.02])
