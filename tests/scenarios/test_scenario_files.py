"""Scenario files: what a good one gives, and what is said of a bad one."""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tables import each
from written_files import (
    GOOD,
    Write,
    assert_told,
    changed,
    errors_of,
    line_of,
    twice,
    with_defaults,
)

from perfgate.core.errors import SeveralInputErrors
from perfgate.core.redaction import control_character_in
from perfgate.scenarios import yaml_document
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import (
    EngineChoice,
    EngineSettings,
    GatePolicy,
    Hardware,
    Limits,
    Model,
    Scenario,
    Source,
    Workload,
    scenario_to_plain,
)

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads(
    (ROOT / "src/perfgate/scenarios/scenario.schema.json").read_text(encoding="utf-8")
)


def but(old: str, new: str) -> str:
    """GOOD with one change."""
    return changed(GOOD, (old, new))[0]


# What a good file gives. --------------------------------------------------------------------


def test_a_file_gives_its_scenarios(write: Write) -> None:
    file = write(GOOD)
    assert load_scenarios(file) == (
        Scenario(
            id="small",
            title="Small",
            source=Source("guide.md", "Serving"),
            hardware=Hardware("none", 0, 1),
            model=Model("Small-1B", "bf16"),
            engine=EngineChoice("llama.cpp", EngineSettings(max_batch_size=4)),
            workload=Workload("aiperf", "synthetic", 64, 32, (4,), requests=24),
            accuracy=(),
            gate=GatePolicy(("output_throughput",)),
            limits=Limits(60.0, 120.0, 600.0),
        ),
    )
    assert load_scenarios(file)[0].file == file


def test_a_folder_gives_all_its_files_sorted_by_path(write: Write) -> None:
    for name in ("b/two.yml", "a/three.yaml", "a/one.yaml"):
        file = write(GOOD.replace("id: small", f"id: {Path(name).stem}"), name)
    write("not read", "a/README.md")
    folder = file.parents[1]
    assert [scenario.id for scenario in load_scenarios(folder)] == ["one", "three", "two"]
    again = folder / "a" / ".." / "a" / "one.yaml"
    assert len(load_scenarios([folder, again])) == 3, "a file named twice is read once"


def test_whole_numbers_are_floats_where_the_field_is_one(write: Write) -> None:
    files = (write(but("24", f"24\n      max_request_rate: {rate}")) for rate in ("9", "9.0"))
    assert len({load_scenarios(file)[0].content_hash() for file in files}) == 1


def test_a_byte_order_mark_is_no_part_of_the_first_key(write: Write) -> None:
    assert load_scenarios(write("\ufeff" + GOOD)) == load_scenarios(write(GOOD))


def test_an_anchor_is_read_where_it_is_used(write: Write) -> None:
    text = but("{start_s: 60, silence_s: 120, total_s: 600}", "{start_s: &s 60, ...}")
    text = text.replace("...", "silence_s: *s, total_s: *s")
    assert load_scenarios(write(text))[0].limits == Limits(60.0, 60.0, 60.0)


# Defaults. ----------------------------------------------------------------------------------


def test_defaults_are_under_each_scenario(write: Write) -> None:
    own = "    engine: {settings: {cpu_threads: 2}}\n    workload: {concurrency: [1, 2]}\n"
    first, second = load_scenarios(
        write(with_defaults(f"{own}    gate: {{metrics: [duration_s]}}"))
    )
    settings = EngineSettings(max_batch_size=4, cpu_threads=2)
    assert first.engine == EngineChoice("llama.cpp", settings), "mappings merge"
    assert first.workload is not None
    assert first.workload.concurrency == (1, 2), "lists and scalars are replaced"
    assert first.gate.metrics == ("duration_s",)
    assert second.engine == EngineChoice("llama.cpp", EngineSettings(max_batch_size=4))


def test_null_takes_a_default_away(write: Write) -> None:
    text = with_defaults("    workload: {requests: null, requests_per_concurrency: 6}")
    first, second = load_scenarios(write(text))
    assert (first.points()[0].requests, second.points()[0].requests) == (24, 24)
    assert first.workload is not None
    assert first.workload.requests is None


def test_null_that_takes_nothing_away_is_an_error(write: Write) -> None:
    (error,) = errors_of(write(with_defaults("    engine: {settings: {tp: }}")))
    assert (error.field, error.found) == ("scenarios[0].engine.settings.tp", "nothing")


@each(
    ("first", "right", "wrong", "field"),
    [
        ("", "max_batch_size: 4", "max_batch_size: four", "engine.settings.max_batch_size"),
        ("    model: {name: A}", "Small-1B", "7", "model.name"),  # that every scenario replaces
    ],
)
def test_an_error_in_defaults_is_told_once_with_its_line_there(
    first: str, right: str, wrong: str, field: str, write: Write
) -> None:
    text = with_defaults(first, (right, wrong))
    if first:
        text = text.replace("title: Second", "title: Second\n    model: {name: B}")
    file = write(text)
    (error,) = errors_of(file)
    assert str(error).startswith(f"{file}:{line_of(text, wrong)}: defaults.{field}: wrong type\n")


def test_a_rule_broken_by_a_default_names_the_scenario_and_the_defaults_line(
    write: Write,
) -> None:
    text = with_defaults("", ("max_batch_size: 4", "max_seq_len: 10")).replace(
        "    title: First\n", "    title: First\n    engine: {settings: {max_seq_len: 96}}\n"
    )
    (error,) = errors_of(write(text))
    assert error.field == "scenarios[1].engine.settings.max_seq_len"
    assert error.line == line_of(text, "max_seq_len: 10")


def test_a_field_that_neither_has_is_missing_in_the_scenario(write: Write) -> None:
    text = with_defaults("", ("      name: llama.cpp\n", ""))
    assert [(one.field, one.line, one.problem) for one in errors_of(write(text))] == [
        ("scenarios[0].engine.name", line_of(text, "id: first"), "missing"),
        ("scenarios[1].engine.name", line_of(text, "id: second"), "missing"),
    ]


@each("field", ["id", "title"])
def test_what_must_differ_has_no_default(field: str, write: Write) -> None:
    text, _ = changed(with_defaults(""), ("defaults:\n", f"defaults:\n    {field}: same\n"))
    (error,) = errors_of(write(text))
    assert (error.field, error.problem) == (f"defaults.{field}", "not allowed in defaults")


# What is said of a wrong value. -------------------------------------------------------------


def titled(section: str) -> tuple[str, str]:
    return "title: Small", f"title: Small\n    {section}"


SECTION, OF_ENGINE, TIME = "section: Serving", "engine.settings.", "limits.total_s"
# Field, words, what is changed to what: in the last line of it something is wrong.
WRONG: list[tuple[str, str, tuple[str, str]]] = [
    ("workload.reqests: unknown field", "mean requests?", ("requests: 24", "reqests: 24")),
    ("limit: unknown field", "did you mean limits?", titled("limit: 5")),
    ("workload.isl: wrong type", "found: text 'long'\n  expected: a whole number, at least 1",
     ("isl: 64", "isl: long")),
    ("workload.isl: wrong type", "write 1000, without quotes", ("isl: 64", "isl: 1e3")),
    ("workload.requests: wrong type", "write 7680, without quotes", (": 24", ": 7,680")),
    ("workload.isl: wrong type", "write 64", ("isl: 64", "isl: 64.0")),
    ("workload.isl: wrong type", "the truth value yes", ("isl: 64", "isl: yes")),
    ("workload.isl: wrong type", "found: nothing", ("isl: 64", "isl:")),
    ("workload.isl: YAML reads this as another number",
     "found: 010\n  expected: a plain decimal number", ("isl: 64", "isl: 010")),
    ("model.precision: wrong type",
     "found: the whole number 8\n  expected: text, not empty\n  fix: quote it", ("bf16", "8")),
    ("source.engine_version: wrong type",
     "found: the number 1.0\n  expected: text, not empty\n  fix: quote it",
     (SECTION, f"{SECTION}, engine_version: 1.0")),
    ("source.engine_commit: malformed", "7 to 40 lower-case hex digits",
     (SECTION, f"{SECTION}, engine_commit: b6261")),
    ("source.section: a kind of value that scenarios do not have", "quote it",
     (SECTION, "section: 2025-08-04")),
    ("environment.A: wrong type", "found: the truth value on\n  expected: text\n  fix: quote it",
     titled("environment: {A: on}")),
    ("environment.A-B: malformed name", "letters, digits and underscores",
     titled("environment: {A-B: '1'}")),
    ("workload.streaming: wrong type", "expected: true or false",
     ("requests: 24", "requests: 24\n      streaming: 'true'")),
    (f"{TIME}: YAML reads this as a number in base 60", "write a time in seconds",
     ("total_s: 600", "total_s: 1:40:00")),
    (f"{TIME}: YAML reads this as another number", "found: 1:40.5", ("600", "1:40.5")),
    (f"{TIME}: not a finite number", "found: .inf", ("total_s: 600", "total_s: .inf")),
    ("limits.start_s: out of range", "a number, above 0", ("start_s: 60", "start_s: 0")),
    ("gate: wrong type", "found: a list\n  expected: a mapping",
     ("{metrics: [output_throughput]}", "[output_throughput]")),
    ("gate.bands.output_throughput: out of range", "a number, above 0, below 1",
     ("[output_throughput]", "[output_throughput], bands: {output_throughput: 1}")),
    ("hardware.gpu: not an allowed value",
     "one of none, A100, H20, H100, H200, B200, GB200\n  fix: did you mean B200?",
     ("gpu: none", "gpu: b200")),
    ("id: malformed", "lower-case words joined by hyphens", ("id: small", "id: Small_One")),
    ("workload.concurrency: empty", "a whole number or a list, at least 1, not empty",
     ("concurrency: 4", "concurrency: []")),
    ("workload.concurrency[0]: out of range", "at least 1", ("cy: 4", "cy: [0, 4]")),
    ("workload.osl: field given twice", "see line 16", ("requests: 24", "osl: 64")),
    ("workload: YAML merge keys are not used here", "the file's defaults block",
     ("isl: 64", "<<: {isl: 64}")),
    ("workload: a field's name must be text", "the whole number 1", ("isl: 64", "1: 64")),
    ("launch.time_limit: malformed", "HH:MM:SS",
     titled("launch: {by: sbatch, time_limit: '45:00'}")),
    ("smoke.prompts: empty", "a list, not empty", titled("smoke: {client: any, prompts: []}")),
    ("listen.port: out of range", "at most 65535", titled("listen: {host: here, port: 80000}")),
]  # fmt: skip


@each(("place", "words", "change"), WRONG)
def test_a_wrong_value_is_told_with_file_line_and_field(
    place: str, words: str, change: tuple[str, str], write: Write
) -> None:
    text, line = changed(GOOD, change)
    assert_told(write(text), line, f"scenarios[0].{place}", words)


@each(
    ("version", "words"),
    [
        ("2", "not an allowed value\n  found: the whole number 2\n  expected: 1"),
        ("'1'", "write 1, without quotes"),
    ],
)
def test_another_schema_version_is_told(version: str, words: str, write: Write) -> None:
    text, line = changed(GOOD, ("schema_version: 1", f"schema_version: {version}"))
    assert_told(write(text), line, "schema_version: ", words)


@each(
    ("taken", "field", "line"),
    [
        ("    title: Small\n", "scenarios[0].title", "id: small"),
        ("      name: llama.cpp\n", "scenarios[0].engine.name", "engine:"),
        ("schema_version: 1\n", "schema_version", "scenarios:"),
    ],
)
def test_a_missing_field_is_told_with_the_line_of_what_lacks_it(
    taken: str, field: str, line: str, write: Write
) -> None:
    text = but(taken, "")
    (error,) = errors_of(write(text))
    assert (error.problem, error.field, error.line) == ("missing", field, line_of(text, line))
    assert error.expected, "says what the field is for"


@each(
    ("added", "field"),
    [
        ("smoke: {client: completion}", "smoke.prompts"),
        ("launch: {output: run.log}", "launch.by"),
        ("container: {name: engine}", "container.image"),
        ("listen: {port: 8000}", "listen.host"),
    ],
)
def test_half_a_section_is_enough_for_defaults_but_not_for_a_scenario(
    added: str, field: str, write: Write
) -> None:
    (error,) = errors_of(write(with_defaults(f"    {added}")))
    assert (error.field, error.problem) == (f"scenarios[0].{field}", "missing")
    assert error.expected, "says what the field is for"
    in_defaults, _ = changed(with_defaults(""), ("defaults:\n", f"defaults:\n    {added}\n"))
    told = [error.field for error in errors_of(write(in_defaults))]
    assert told == [f"scenarios[{number}].{field}" for number in (0, 1)]


def test_all_errors_of_all_files_are_told_at_once_in_their_order(write: Write) -> None:
    first = write(but("isl: 64", "isl: long").replace("total_s: 600", "total_s: 1:40:00"), "a.yaml")
    second = write("a: b: c\n", "b.yaml")
    third = write(GOOD.replace("requests: 24", "requests: 1"), "c.yaml")
    told = [(error.file, error.line, error.problem) for error in errors_of(first.parent)]
    assert told == [
        (first, line_of(GOOD, "isl: 64"), "wrong type"),
        (first, line_of(GOOD, "total_s"), "YAML reads this as a number in base 60"),
        (second, 1, "broken YAML"),
        (third, line_of(GOOD, "requests: 24"), "fewer requests than concurrency"),
    ]


def test_an_id_used_twice_names_both_places(write: Write) -> None:
    first = write(GOOD, "a.yaml")
    second = write(GOOD, "b/b.yaml")
    (error,) = errors_of(first.parent)
    assert str(error).startswith(f"{second}:3: scenarios[0].id: id given twice\n  found: small")
    assert f"the first is in {first}:3" in str(error)


def test_values_that_python_takes_for_equal_are_still_told_apart(write: Write) -> None:
    """A section that was right once is not checked again: true must not pass for 1."""
    text = twice(but("requests: 24", "requests: 1").replace("concurrency: 4", "concurrency: 1"))
    before, _, after = text.rpartition("requests: 1")
    (error,) = errors_of(write(f"{before}requests: yes{after}"))
    assert error.field == "scenarios[1].workload.requests"


# What is no scenario file at all. -----------------------------------------------------------


@each(
    ("content", "line", "words"),
    [
        ("", None, "empty file"),
        ("# only a comment\n", None, "empty file"),
        ("schema_version: 1\nscenarios: []\n", 2, "scenarios: empty"),
        ("schema_version: 1\ndefaults: {}\n", 1, "scenarios: missing"),
        ("schema_version: 1\nscenarios:\n", 2, "scenarios: wrong type"),
        ("schema_version: 1\nscenarios: {a: 1}\n", 2, "wrong type"),
        ("schema_version: 1\nscenarios: [5]\n", 2, "scenarios[0]: wrong"),
        ("schema_version: 1\ndefaults: 5\nscenarios: [{}]\n", 2, "defaults: wrong"),
        ("- a\n", 1, "expected: a mapping"),
        ("text\n", 1, "expected: a mapping"),
        ("a: 1\nb: [1\nc: 2\n", 3, "broken YAML"),
        ("a: 1\nbb: 'x\n", 3, "column"),
        ("a:\n\tb: 1\n", 2, "spaces, not tabs"),
        ("a: *b\n", 1, "found undefined alias"),
        ("a: 1\n---\nb: 2\n", 2, "broken YAML"),
        ("a: &a [*a]\n", 1, "a value that contains itself"),
        ("a: \x07\n", 1, "broken YAML"),
        (b"a: 1\nb: \xff\n", 2, "not UTF-8 text\n  found: byte 0xff"),
        ("a: !!binary aGk=\n", 1, "a kind of value"),
        ("a: !!float abc\n", 1, "a kind of value"),
        ("? [a]\n: 1\nb: [1]\n", 1, "a field's name must be text"),
        ("a: !!bool abc\n", 1, "a kind of value"),
    ],
)
def test_a_file_that_is_none_is_told(
    content: str | bytes, line: int | None, words: str, write: Write
) -> None:
    file = write(content)
    told = [str(error) for error in errors_of(file) if words in str(error)]
    assert told
    assert told[0].startswith(f"{file}:{line}: " if line else f"{file}: ")


def test_places_without_scenarios_are_errors(tmp_path: Path) -> None:
    assert errors_of(tmp_path)[0].problem == "no scenario file"
    assert errors_of(tmp_path / "gone")[0].problem == "no such file or folder"
    assert errors_of([])[0].problem == "no scenario file given"


def test_a_file_that_cannot_be_read_is_told(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(GOOD)

    def refuse(path: Path, limit: int, what: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(yaml_document, "read_input", refuse)
    (error,) = errors_of(file)
    assert str(error) == f"{file}: cannot be read\n  found: Permission denied"


# Schema, files and dataclasses say the same. ------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1).filter(
    lambda text: control_character_in(text) is None
)
SUITE = load_scenarios(ROOT / "scenarios")  # which sets nearly all that there is


def assert_read_back(scenario: Scenario, folder: Path) -> None:
    plain = scenario_to_plain(scenario)
    told_hash = plain.pop("content_hash")
    document = {"schema_version": 1, "scenarios": [plain]}
    Draft202012Validator(SCHEMA).validate(document)
    file = folder / "round-trip.yaml"
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    (read,) = load_scenarios(file)
    assert read == scenario
    assert read.content_hash() == scenario.content_hash() == told_hash


@each("scenario", SUITE, ids=lambda scenario: scenario.id)
def test_what_is_shown_of_a_scenario_can_be_read_back(scenario: Scenario, tmp_path: Path) -> None:
    assert_read_back(scenario, tmp_path)


@given(title=TEXT, value=TEXT)
@settings(max_examples=50, suppress_health_check=list(HealthCheck))
def test_any_text_can_be_read_back(title: str, value: str, tmp_path: Path) -> None:
    assert_read_back(replace(SUITE[0], title=title, environment={"X": value}), tmp_path)


@given(data=st.data(), scenario=st.sampled_from(SUITE))
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_what_the_schema_refuses_is_never_read(
    data: st.DataObject, scenario: Scenario, tmp_path: Path
) -> None:
    """One value anywhere is replaced; if jsonschema refuses the file, so does `load_scenarios`."""
    plain: Any = scenario_to_plain(scenario)
    del plain["content_hash"]
    document = {"schema_version": 1, "scenarios": [plain]}
    where: Any = document
    key: Any = "scenarios"
    while isinstance(where[key], dict | list) and where[key] and data.draw(st.integers(0, 3)):
        where = where[key]
        keys = sorted(where) if isinstance(where, dict) else range(len(where))
        key = data.draw(st.sampled_from(keys))
    where[key] = data.draw(st.sampled_from([None, True, 0, -1, 2.5, "", "no such", [], {}, [1]]))
    refused = not Draft202012Validator(SCHEMA).is_valid(document)
    file = tmp_path / "replaced.yaml"
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    if refused:
        assert all(error.file == file and error.line for error in errors_of(file))
        return
    with suppress(SeveralInputErrors):  # the rules may refuse more
        load_scenarios(file)
