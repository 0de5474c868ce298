"""Faults: how they are asked for, and that what they print is what perfgate knows them by."""

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.failures import FAILURES, diagnose
from perfgate.rehearsal.faults import FAULTS, Fault, Scale, parse_fault, require_hits
from perfgate.rehearsal.programs import llm_api

RELEASES = [(0, 19), (1, 0), (1, 3)]
PRINTED = [
    kind
    for kind in FAULTS.values()
    if kind.place in ("engine", "answers") and not kind.name.startswith(("cli_drift", "killed"))
]


class TestParse:
    def test_a_name_and_a_loss(self) -> None:
        assert parse_fault("oom") == Fault("oom")
        assert parse_fault("slow:8%") == Fault("slow", 0.08)
        assert parse_fault("accuracy:2pp") == Fault("accuracy", 0.02)

    def test_factors_of_single_metrics(self) -> None:
        fault = parse_fault("scale:b200-*:output_throughput=0.5,one-c4:accuracy:gsm8k:a:b=1.1")
        assert fault.scales == (
            Scale("b200-*", "output_throughput", 0.5),
            Scale("one-c4", "accuracy:gsm8k:a:b", 1.1),
        )

    @each("kind", FAULTS.values(), ids=lambda kind: kind.name)
    def test_every_example_can_be_asked_for(self, kind) -> None:
        assert parse_fault(kind.example).kind is kind

    @each(
        "text",
        [
            *("", "melt", "oom:8%", "slow", "slow:8", "slow:8pp", "slow:0%", "slow:100%", "scale"),
            *("scale:one", "scale:one:ttft_mean_ms", "scale:one:ttft_mean_ms=0", "scale::a=1"),
        ],
    )
    def test_refuses_anything_else_and_lists_all_faults(self, text: str) -> None:
        with pytest.raises(InputError) as caught:
            parse_fault(text)
        assert all(kind.example in str(caught.value) for kind in FAULTS.values())


class TestScale:
    fault = parse_fault("scale:one:*throughput*=0.5,one-c4:duration_s=2")

    def test_hits_the_metrics_and_probes_that_it_names(self) -> None:
        assert self.fault.factor("one", "c4", "output_throughput_per_gpu") == 0.5
        assert self.fault.factor("one", "c4", "duration_s") == 2
        assert self.fault.factor("one", "c1", "duration_s") == 1
        assert self.fault.factor("another", "c4", "output_throughput") == 1

    def test_refuses_a_scenario_or_probe_that_is_not_rehearsed(self) -> None:
        require_hits(self.fault, [("one", "c1"), ("one", "c4")])
        with pytest.raises(InputError, match="one-c4"):
            require_hits(self.fault, [("one", "c1")])

    def test_refuses_a_metric_that_does_not_exist(self) -> None:
        with pytest.raises(InputError, match="throughputt"):
            require_hits(parse_fault("scale:one:throughputt=2"), [("one", "c1")])


def test_every_fault_has_a_class_of_failure_or_worse_numbers() -> None:
    for kind in FAULTS.values():
        assert (kind.failure is None) == (kind.place == "numbers")
        assert kind.failure is None or kind.failure in FAILURES


@each("release", RELEASES, ids=str)
@each("kind", PRINTED, ids=lambda kind: kind.name)
def test_the_printed_lines_are_known_for_what_they_are(kind, release: tuple[int, int]) -> None:
    for server in (None, ("localhost", 8000)):
        lines = kind.written("tensorrt-llm", release, server).splitlines()
        assert diagnose(enumerate(lines, start=1)).failure == kind.failure


@pytest.mark.parametrize("kind", PRINTED, ids=lambda kind: kind.name)
def test_healthy_lines_in_front_do_not_hide_the_cause(
    kind, capsys: pytest.CaptureFixture[str]
) -> None:
    llm_api.engine_starts("model", 8, 0.9)
    lines = capsys.readouterr().out.splitlines()
    assert diagnose(enumerate(lines, start=1)) is None
    lines += kind.written("tensorrt-llm", (1, 0)).splitlines()
    assert diagnose(enumerate(lines, start=1)).failure == kind.failure
