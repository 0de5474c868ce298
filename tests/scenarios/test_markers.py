"""Markers: of the hardware by itself, declared once, and every one that is used is declared."""

from dataclasses import replace
from pathlib import Path

from building import SCENARIO
from tables import each
from written_files import GOOD, Write, errors_of, line_of, twice

from perfgate.scenarios.files import load_suite
from perfgate.scenarios.markers import (
    DECLARED_BY_PERFGATE,
    HARDWARE_MARKERS,
    hardware_marker,
    kinds_of,
    markers_of,
    markers_of_test,
)
from perfgate.scenarios.scenario import GPUS, Hardware

ROOT = Path(__file__).parents[2]
MARKED = GOOD.replace("title: Small", "title: Small\n    markers: [quick]")
QUICK = "schema_version: 1\nmarkers:\n  quick: done in a minute\n"
B200 = replace(SCENARIO, hardware=Hardware("B200", 8), markers=("latency",))


def test_markers_of_hardware_and_streaming_are_added() -> None:
    assert SCENARIO.workload is not None
    at_once = replace(SCENARIO, workload=replace(SCENARIO.workload, streaming=False))
    assert "streaming" not in markers_of(at_once)
    assert markers_of(replace(SCENARIO, workload=None, markers=("serving",))) == (
        *("accuracy", "local", "serving"),
    )
    load = ("b200", "streaming", "throughput")
    assert markers_of_test(replace(B200, markers=("b200",)), "throughput") == load


def test_latency_is_of_load_alone_and_all_else_of_all_tests_of_a_scenario() -> None:
    one = replace(B200, markers=("latency", "quick"))
    assert kinds_of(one) == ("throughput", "accuracy")
    load = ("b200", "latency", "quick", "streaming", "throughput")
    assert markers_of_test(one, "throughput") == load
    assert markers_of_test(one, "accuracy") == ("accuracy", "b200", "quick")
    assert markers_of(one) == ("accuracy", *load)


def test_every_gpu_has_a_marker_with_a_meaning() -> None:
    markers = {hardware_marker(replace(SCENARIO, hardware=Hardware(gpu, 8))) for gpu in GPUS}
    assert markers == HARDWARE_MARKERS
    assert len(markers) == len(GPUS)
    assert DECLARED_BY_PERFGATE["b200"] == "needs B200 GPUs"
    assert DECLARED_BY_PERFGATE["local"] == "needs no GPU, runs on any machine"


# Declared. ----------------------------------------------------------------------------------


def test_a_marker_holds_for_all_files_that_are_loaded_together(write: Write) -> None:
    declaring, using = write(QUICK, "own/markers.yaml"), write(MARKED, "other/small.yaml")
    suite = load_suite([using, declaring.parent])
    assert [scenario.id for scenario in suite.scenarios] == ["small"]
    assert suite.markers["quick"] == "done in a minute"
    assert suite.markers["b200"] == "needs B200 GPUs"


@each(
    ("old", "new", "marker", "meaning"),
    [
        ("scenarios:", "markers: {quick: short}\nscenarios:", "quick", "short"),
        ("[quick]", "[serving, explore]", "serving", "a server under load"),  # the suite's own
        ("scenarios:", "markers: {serving: mine, quick: x}\nscenarios:", "serving", "mine"),
    ],
)
def test_a_file_may_declare_markers_and_has_those_of_the_suite(
    old: str, new: str, marker: str, meaning: str, write: Write
) -> None:
    assert load_suite(write(MARKED.replace(old, new))).markers[marker] == meaning


def test_a_marker_that_is_declared_nowhere_is_an_error(write: Write) -> None:
    write(QUICK, "markers.yaml")
    file = write(MARKED.replace("[quick]", "[serving, quik]"))
    (error,) = errors_of(file.parent)
    assert str(error).startswith(
        f"{file}:{line_of(MARKED, 'markers')}: scenarios[0].markers[1]: unknown marker\n"
        "  found: quik\n"
        "  expected: one of a100, accuracy, b200, "
    )
    assert error.hint == "did you mean quick?"


def test_one_that_is_like_none_is_told_where_to_declare_it(write: Write) -> None:
    (error,) = errors_of(write(MARKED.replace("quick", "zzzzzz")))
    assert error.hint == "declare it, with its meaning, under markers of a scenario file"


def test_one_of_the_defaults_is_told_once(write: Write) -> None:
    text = twice(GOOD).replace("scenarios:", "defaults:\n  markers: [quik]\nscenarios:")
    (error,) = errors_of(write(text))
    assert (error.field, error.line) == ("defaults.markers[0]", 3)


def test_a_marker_declared_twice_names_both_places(write: Write) -> None:
    first = write(QUICK, "a.yaml")
    second = write("# own\n" + QUICK, "b.yaml")
    (error,) = errors_of(first.parent)
    assert str(error) == (
        f"{second}:4: markers.quick: marker declared twice\n"
        "  found: quick\n"
        f"  expected: one declaration; the first is in {first}:3"
    )


@each(
    ("name", "problem"),
    [
        ("b200", "marker declared twice"),
        ("claim", "marker declared twice"),
        ("and", "a word of marker expressions"),
        ("skip", "a word of pytest"),
        ("Quick", "malformed name"),
        ("not-quick", "malformed name"),
    ],
)
def test_names_that_cannot_be_declared(name: str, problem: str, write: Write) -> None:
    (error,) = errors_of(write(QUICK.replace("quick", name)))
    assert (error.field, error.line, error.problem) == (f"markers.{name}", 3, problem)


@each("meaning", ['""', "7", "[a]", '"a\\nb"', ""])
def test_a_meaning_is_one_line_of_text(meaning: str, write: Write) -> None:
    (error,) = errors_of(write(QUICK.replace("done in a minute", meaning)))
    assert (error.field, error.line) == ("markers.quick", 3)


def test_no_marker_is_called_unknown_when_a_declaration_may_be_missing(write: Write) -> None:
    write(MARKED)
    broken = write(QUICK.replace("done in a minute", "7"), "markers.yaml")
    (error,) = errors_of(broken.parent)
    assert error.file == broken


def test_every_marker_that_the_suite_declares_is_used() -> None:
    suite = load_suite(ROOT / "scenarios")
    used = {marker for scenario in suite.scenarios for marker in scenario.markers}
    assert set(suite.markers) - set(DECLARED_BY_PERFGATE) <= used
