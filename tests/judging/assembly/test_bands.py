"""Bands: which number counts for a metric of a scenario, and where it comes from."""

from dataclasses import replace

import building
import pytest
from tables import each

from perfgate.judging.assembly.bands import gating_bands, resolve_band
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.scenario import Scenario

SPEED = "output_throughput"
OWN = DocumentedValue(100.0, tolerance=0.25)
NARROW = DocumentedValue(100.0, tolerance=0.05)
BARE = DocumentedValue(100.0)


def scenario(nodes: int = 1, **bands: float) -> Scenario:
    made = building.SCENARIO
    return replace(
        made,
        hardware=replace(made.hardware, nodes=nodes),
        gate=replace(made.gate, bands=bands),
    )


@each(
    "made, metric, value, loss, source",
    [
        (scenario(), SPEED, None, 0.02, "family"),
        (scenario(nodes=2), SPEED, None, 0.06, "nodes"),
        (scenario(output_throughput=0.03), SPEED, None, 0.03, "scenario"),
        (scenario(2, output_throughput=0.03), SPEED, None, 0.03, "scenario"),
        # no other default is known on several nodes
        (scenario(nodes=2), "ttft_mean_ms", None, 0.15, "family"),
        (scenario(), "ttft_p99_ms", None, None, "family"),
        (scenario(), SPEED, OWN, 0.25, "document"),
        (scenario(output_throughput=0.3), SPEED, OWN, 0.25, "document"),
        # a documented speed is of another machine: 10 % at least
        (scenario(), SPEED, BARE, 0.10, "document"),
        (scenario(), SPEED, NARROW, 0.10, "document"),
        (scenario(output_throughput=0.03), SPEED, BARE, 0.10, "document"),
        (scenario(output_throughput=0.12), SPEED, BARE, 0.12, "scenario"),
        (scenario(), "ttft_mean_ms", BARE, 0.15, "family"),
        (scenario(), building.SUMS, None, 0.02, "family"),
        (scenario(), building.SUMS, DocumentedValue(0.95), 0.02, "family"),
        (scenario(), building.SUMS, DocumentedValue(0.95, tolerance=0.01), 0.01, "document"),
        (scenario(**{building.SUMS: 0.05}), building.SUMS, None, 0.05, "scenario"),
    ],
)
def test_the_band_and_its_source(
    made: Scenario, metric: str, value: DocumentedValue | None, loss: float | None, source: str
) -> None:
    found = resolve_band(metric, made, value)
    assert (found.loss, found.source) == (loss, source)
    assert found.against == ("baseline" if value is None else "documented")


@each(
    "made, metric, text",
    [
        (scenario(), SPEED, "2.0 % family throughput"),
        (scenario(nodes=2), SPEED, "6.0 % family throughput, several nodes"),
        (scenario(output_throughput=0.03), SPEED, "3.0 % scenario"),
        (scenario(), building.SUMS, "2.0 points family accuracy"),
        (scenario(), "ttft_p99_ms", "report only"),
    ],
)
def test_in_words(made: Scenario, metric: str, text: str) -> None:
    assert resolve_band(metric, made).describe() == text


def test_every_gating_metric_has_its_band_against_what_it_can_be_compared_with() -> None:
    documented = {SPEED: BARE, building.SUMS: DocumentedValue(0.9), "ttft_mean_ms": BARE}
    found = gating_bands(scenario(), documented)
    assert list(found) == list(scenario().gate.metrics)
    assert [one.against for one in found[SPEED]] == ["baseline", "documented"]
    assert [one.against for one in found["tpot_mean_ms"]] == ["baseline"]


def test_a_machine_that_measures_itself_compares_no_speed_with_a_document() -> None:
    own = scenario()
    own = replace(own, gate=replace(own.gate, reference="self"))
    found = gating_bands(own, {SPEED: BARE, building.SUMS: DocumentedValue(0.9)})
    assert [one.against for one in found[SPEED]] == ["baseline"]
    assert [one.loss for one in found[building.SUMS]] == pytest.approx([0.02, 0.02])
