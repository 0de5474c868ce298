"""Scenario files: what a good one gives, and what is said of a bad one."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from perfgate.core.control_characters import found_in
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.scenarios import yaml_document
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.plain import scenario_to_plain
from perfgate.scenarios.scenario import (
    AccuracyTask,
    Container,
    CudaGraphs,
    EngineChoice,
    EngineSettings,
    Floor,
    GatePolicy,
    Hardware,
    Launch,
    Limits,
    Listen,
    Model,
    MoeLoadBalancer,
    Mtp,
    Scenario,
    Smoke,
    Source,
    Weights,
    Workload,
)

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads(
    (ROOT / "src/perfgate/scenarios/scenario.schema.json").read_text(encoding="utf-8")
)

SECTIONS = """\
    title: Small
    source: {document: guide.md, section: Serving}
    hardware: {gpu: none, gpus: 0}
    model: {name: Small-1B, precision: bf16}
    engine:
      name: llama.cpp
      settings:
        max_batch_size: 4
    workload:
      client: aiperf
      dataset: synthetic
      isl: 64
      osl: 32
      concurrency: 4
      requests: 24
    gate: {metrics: [output_throughput]}
    limits: {start_s: 60, silence_s: 120, total_s: 600}
"""
GOOD = f"schema_version: 1\nscenarios:\n  - id: small\n{SECTIONS}"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file into an empty folder and gives its path."""

    def write_text(text: str | bytes, name: str = "small.yaml") -> Path:
        file = tmp_path / "files" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return write_text


def errors_of(place: Path | list[Path]) -> list[InputError]:
    with pytest.raises(SeveralInputErrors) as caught:
        load_scenarios(place)
    return list(caught.value.errors)


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def line_of(text: str, words: str) -> int:
    return next(n for n, row in enumerate(text.splitlines(), start=1) if words in row)


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


def test_the_suites_own_scenarios_are_good() -> None:
    scenarios = {scenario.id: scenario for scenario in load_scenarios(ROOT / "scenarios")}
    local = scenarios["local-smollm2-serve"]
    assert [(p.label, p.requests, p.warmup_requests) for p in local.points()] == [
        ("c1", 8, 1),
        ("c4", 8, 1),
    ]
    assert local.hardware.label == "cpu"
    assert local.accuracy[0].extra_body == {"cache_prompt": True}


def test_whole_numbers_are_floats_where_the_field_is_one(write: Write) -> None:
    whole = load_scenarios(
        write(changed("requests: 24", "requests: 24\n      max_request_rate: 9"))
    )
    broken = load_scenarios(
        write(changed("requests: 24", "requests: 24\n      max_request_rate: 9.0"), "b.yaml")
    )
    assert whole[0].content_hash() == broken[0].content_hash()


def test_a_byte_order_mark_is_no_matter(write: Write) -> None:
    """Some editors write one; it is no part of the first key."""
    assert load_scenarios(write(b"\xef\xbb\xbf" + GOOD.encode())) == load_scenarios(
        write(GOOD, "b.yaml")
    )


def test_an_anchor_is_read_where_it_is_used(write: Write) -> None:
    text = changed("{start_s: 60, silence_s: 120, total_s: 600}", "{start_s: &s 60, ...}")
    text = text.replace("...", "silence_s: *s, total_s: *s")
    assert load_scenarios(write(text))[0].limits == Limits(60.0, 60.0, 60.0)


# Defaults. ----------------------------------------------------------------------------------

WITH_DEFAULTS = """\
schema_version: 1
defaults:
{sections}scenarios:
  - id: first
    title: First
{first}
  - id: second
    title: Second
"""


def with_defaults(first: str, *changes: tuple[str, str]) -> str:
    """GOOD's sections as defaults of two scenarios."""
    sections = SECTIONS.replace("    title: Small\n", "")
    for old, new in changes:
        assert old in sections
        sections = sections.replace(old, new)
    return WITH_DEFAULTS.format(sections=sections, first=first)


def test_defaults_are_under_each_scenario(write: Write) -> None:
    first, second = load_scenarios(
        write(
            with_defaults(
                "    engine: {settings: {cpu_threads: 2}}\n"
                "    workload: {concurrency: [1, 2]}\n"
                "    gate: {metrics: [duration_s]}"
            )
        )
    )
    assert first.engine == EngineChoice(
        "llama.cpp", EngineSettings(max_batch_size=4, cpu_threads=2)
    ), "mappings merge"
    assert first.workload is not None
    assert first.workload.concurrency == (1, 2), "lists and scalars are replaced"
    assert first.gate.metrics == ("duration_s",)
    assert second.engine == EngineChoice("llama.cpp", EngineSettings(max_batch_size=4))


def test_null_takes_a_default_away(write: Write) -> None:
    first, second = load_scenarios(
        write(with_defaults("    workload: {requests: null, requests_per_concurrency: 6}"))
    )
    assert (first.points()[0].requests, second.points()[0].requests) == (24, 24)
    assert first.workload is not None
    assert first.workload.requests is None


def test_null_that_takes_nothing_away_is_an_error(write: Write) -> None:
    (error,) = errors_of(write(with_defaults("    engine: {settings: {tp: }}")))
    assert (error.field, error.found) == ("scenarios[0].engine.settings.tp", "nothing")


def test_an_error_in_defaults_is_told_once_with_its_line_there(write: Write) -> None:
    text = with_defaults("", ("max_batch_size: 4", "max_batch_size: four"))
    file = write(text)
    (error,) = errors_of(file)
    assert str(error).startswith(
        f"{file}:{line_of(text, 'four')}: defaults.engine.settings.max_batch_size: wrong type\n"
    )


def test_a_wrong_default_is_told_even_if_every_scenario_replaces_it(write: Write) -> None:
    text = with_defaults("    model: {name: A}", ("Small-1B", "7")).replace(
        "title: Second", "title: Second\n    model: {name: B}"
    )
    (error,) = errors_of(write(text))
    assert error.field == "defaults.model.name"


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
    first, second = errors_of(write(text))
    assert (first.field, first.line) == ("scenarios[0].engine.name", line_of(text, "id: first"))
    assert (second.field, second.line) == ("scenarios[1].engine.name", line_of(text, "id: second"))
    assert first.problem == "missing"


@pytest.mark.parametrize("field", ["id", "title"])
def test_what_must_differ_has_no_default(field: str, write: Write) -> None:
    text = with_defaults("").replace("defaults:\n", f"defaults:\n    {field}: same\n")
    (error,) = errors_of(write(text))
    assert (error.field, error.problem) == (f"defaults.{field}", "not allowed in defaults")


# What is said of a wrong value. -------------------------------------------------------------

WRONG = {
    "unknown field": (
        ("requests: 24", "reqests: 24"),
        "scenarios[0].workload.reqests: unknown field",
        "did you mean requests?",
    ),
    "unknown section": (
        ("title: Small", "title: Small\n    limit: 5"),
        "scenarios[0].limit: unknown field",
        "did you mean limits?",
    ),
    "text for a number": (
        ("isl: 64", "isl: long"),
        "scenarios[0].workload.isl: wrong type",
        "found: text 'long'\n  expected: a whole number, at least 1",
    ),
    "1e3 is text in YAML": (
        ("isl: 64", "isl: 1e3"),
        "scenarios[0].workload.isl: wrong type",
        "write 1000, without quotes",
    ),
    "thousands with a comma": (
        ("requests: 24", "requests: 7,680"),
        "scenarios[0].workload.requests: wrong type",
        "write 7680, without quotes",
    ),
    "a float for a count": (
        ("isl: 64", "isl: 64.0"),
        "scenarios[0].workload.isl: wrong type",
        "write 64",
    ),
    "a number for text": (
        ("precision: bf16", "precision: 8"),
        "scenarios[0].model.precision: wrong type",
        "found: the whole number 8\n  expected: text, not empty\n  fix: quote it",
    ),
    "a version is a number in YAML": (
        ("section: Serving", "section: Serving, engine_version: 1.0"),
        "scenarios[0].source.engine_version: wrong type",
        "found: the number 1.0\n  expected: text, not empty\n  fix: quote it",
    ),
    "on is a truth value in YAML": (
        ("title: Small", "title: Small\n    environment: {TRTLLM_ENABLE_PDL: on}"),
        "scenarios[0].environment.TRTLLM_ENABLE_PDL: wrong type",
        "found: the truth value on\n  expected: text\n  fix: quote it",
    ),
    "yes for a name": (
        ("name: Small-1B", "name: yes"),
        "scenarios[0].model.name: wrong type",
        "the truth value yes",
    ),
    "text for a truth value": (
        ("requests: 24", "requests: 24\n      streaming: 'true'"),
        "scenarios[0].workload.streaming: wrong type",
        "expected: true or false",
    ),
    "a truth value for a number": (
        ("isl: 64", "isl: yes"),
        "scenarios[0].workload.isl: wrong type",
        "the truth value yes",
    ),
    "base 60": (
        ("total_s: 600", "total_s: 1:40:00"),
        "scenarios[0].limits.total_s: YAML reads this as a number in base 60",
        "write a time in seconds",
    ),
    "base 60 with a fraction": (
        ("total_s: 600", "total_s: 1:40.5"),
        "scenarios[0].limits.total_s: YAML reads this as another number",
        "found: 1:40.5",
    ),
    "octal": (
        ("isl: 64", "isl: 010"),
        "scenarios[0].workload.isl: YAML reads this as another number",
        "found: 010\n  expected: a plain decimal number",
    ),
    "a date": (
        ("section: Serving", "section: 2025-08-04"),
        "scenarios[0].source.section: a kind of value that scenarios do not have",
        "quote it",
    ),
    "infinity": (
        ("total_s: 600", "total_s: .inf"),
        "scenarios[0].limits.total_s: not a finite number",
        "found: .inf",
    ),
    "a value left out": (
        ("isl: 64", "isl:"),
        "scenarios[0].workload.isl: wrong type",
        "found: nothing",
    ),
    "a list for a mapping": (
        ("gate: {metrics: [output_throughput]}", "gate: [output_throughput]"),
        "scenarios[0].gate: wrong type",
        "found: a list\n  expected: a mapping",
    ),
    "enum": (
        ("gpu: none", "gpu: b200"),
        "scenarios[0].hardware.gpu: not an allowed value",
        "expected: one of none, A100, H20, H100, H200, B200, GB200\n  fix: did you mean B200?",
    ),
    "id not in kebab case": (
        ("id: small", "id: Small_One"),
        "scenarios[0].id: malformed",
        "lower-case words joined by hyphens",
    ),
    "no concurrency": (
        ("concurrency: 4", "concurrency: []"),
        "scenarios[0].workload.concurrency: empty",
        "a whole number or a list, at least 1, not empty",
    ),
    "concurrency of nothing": (
        ("concurrency: 4", "concurrency: [0, 4]"),
        "scenarios[0].workload.concurrency[0]: out of range",
        "at least 1",
    ),
    "a band of one": (
        ("[output_throughput]", "[output_throughput], bands: {output_throughput: 1}"),
        "scenarios[0].gate.bands.output_throughput: out of range",
        "a number, above 0, below 1",
    ),
    "the whole KV cache": (
        ("max_batch_size: 4", "kv_cache_fraction: 1.0"),
        "scenarios[0].engine.settings.kv_cache_fraction: out of range",
        "a number, above 0, below 1",
    ),
    "no time": (
        ("start_s: 60", "start_s: 0"),
        "scenarios[0].limits.start_s: out of range",
        "a number, above 0",
    ),
    "no node": (
        ("gpus: 0", "gpus: 0, nodes: 0"),
        "scenarios[0].hardware.nodes: out of range",
        "a whole number, at least 1",
    ),
    "marker that pytest cannot select": (
        ("title: Small", "title: Small\n    markers: [min-latency]"),
        "scenarios[0].markers[0]: malformed",
        "letters, digits and underscores",
    ),
    "environment name": (
        ("title: Small", "title: Small\n    environment: {A-B: '1'}"),
        "scenarios[0].environment.A-B: malformed name",
        "letters, digits and underscores",
    ),
    "short commit": (
        ("section: Serving", "section: Serving, engine_commit: b6261"),
        "scenarios[0].source.engine_commit: malformed",
        "7 to 40 lower-case hex digits",
    ),
    "field given twice": (
        ("requests: 24", "osl: 64"),
        "scenarios[0].workload.osl: field given twice",
        "see line 16",
    ),
    "merge key": (
        ("isl: 64", "<<: {isl: 64}"),
        "scenarios[0].workload: YAML merge keys are not used here",
        "the file's defaults block",
    ),
    "a name that is not text": (
        ("isl: 64", "1: 64"),
        "scenarios[0].workload: a field's name must be text",
        "found: the whole number 1",
    ),
    "an unknown way to the nodes": (
        ("title: Small", "title: Small\n    launch: {by: ssh}"),
        "scenarios[0].launch.by: not an allowed value",
        "expected: one of mpirun, srun, sbatch",
    ),
    "a time limit that YAML reads as a number": (
        ("title: Small", "title: Small\n    launch: {by: sbatch, time_limit: 2:00:00}"),
        "scenarios[0].launch.time_limit: YAML reads this as a number in base 60",
        "quote it",
    ),
    "a time limit without hours": (
        ("title: Small", "title: Small\n    launch: {by: sbatch, time_limit: '45:00'}"),
        "scenarios[0].launch.time_limit: malformed",
        "HH:MM:SS",
    ),
    "no prompt": (
        ("title: Small", "title: Small\n    smoke: {client: completion, prompts: []}"),
        "scenarios[0].smoke.prompts: empty",
        "a list, not empty",
    ),
    "a port beyond all ports": (
        ("title: Small", "title: Small\n    listen: {host: localhost, port: 80000}"),
        "scenarios[0].listen.port: out of range",
        "at most 65535",
    ),
    "another schema version": (
        ("schema_version: 1", "schema_version: 2"),
        "schema_version: not an allowed value",
        "found: the whole number 2\n  expected: 1",
    ),
    "version as text": (
        ("schema_version: 1", "schema_version: '1'"),
        "schema_version: wrong type",
        "write 1, without quotes",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_told_with_file_line_and_field(name: str, write: Write) -> None:
    (old, new), start, words = WRONG[name]
    text = changed(old, new)
    file = write(text)
    # The line that was changed: the last of those that were put in its place.
    line = line_of(GOOD, old) + new.count("\n")
    told = [str(error) for error in errors_of(file)]
    assert [t for t in told if t.startswith(f"{file}:{line}: {start}") and words in t], told


@pytest.mark.parametrize(
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
    text = changed(taken, "")
    (error,) = errors_of(write(text))
    assert (error.problem, error.field, error.line) == ("missing", field, line_of(text, line))
    assert error.expected, "says what the field is for"


@pytest.mark.parametrize(
    ("added", "field"),
    [
        ("model: {weights: {shards: 80}}", "model.weights.gib"),
        ("smoke: {client: completion}", "smoke.prompts"),
        ("launch: {output: run.log}", "launch.by"),
        ("container: {name: engine}", "container.image"),
        ("listen: {port: 8000}", "listen.host"),
    ],
)
def test_half_a_section_is_enough_for_defaults_but_not_for_a_scenario(
    added: str, field: str, write: Write
) -> None:
    text = with_defaults(f"    {added}")
    (error,) = errors_of(write(text))
    assert (error.field, error.problem) == (f"scenarios[0].{field}", "missing")
    assert error.expected, "says what the field is for"
    in_defaults = text.replace(f"    {added}\n", "").replace(
        "defaults:\n", f"defaults:\n    {added}\n" if "model" not in added else "defaults:\n"
    )
    if "model" in added:
        in_defaults = in_defaults.replace("Small-1B,", "Small-1B, weights: {shards: 80},")
    first, second = errors_of(write(in_defaults))
    assert [first.problem, second.problem] == ["missing", "missing"], "told of the scenarios"


def test_all_errors_of_all_files_are_told_at_once_in_their_order(write: Write) -> None:
    first = write(
        changed("isl: 64", "isl: long").replace("total_s: 600", "total_s: 1:40:00"), "a.yaml"
    )
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
    again = SECTIONS.replace("title: Small", "title: Again").replace(
        "requests: 24", "requests: yes"
    )
    text = changed("requests: 24", "requests: 1").replace("concurrency: 4", "concurrency: 1")
    again = again.replace("concurrency: 4", "concurrency: 1")
    (error,) = errors_of(write(f"{text}  - id: again\n{again}"))
    assert error.field == "scenarios[1].workload.requests"


# What is no scenario file at all. -----------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        pytest.param("", None, "empty file", id="empty"),
        pytest.param("# only a comment\n", None, "empty file", id="comment"),
        pytest.param("schema_version: 1\nscenarios: []\n", 2, "scenarios: empty", id="none"),
        pytest.param("schema_version: 1\n", 1, "scenarios: missing", id="no scenarios"),
        pytest.param("schema_version: 1\nscenarios:\n", 2, "scenarios: wrong type", id="null"),
        pytest.param("schema_version: 1\nscenarios: {a: 1}\n", 2, "wrong type", id="mapping"),
        pytest.param("schema_version: 1\nscenarios: [5]\n", 2, "scenarios[0]: wrong", id="item"),
        pytest.param("schema_version: 1\ndefaults: 5\nscenarios: [{}]\n", 2, "defaults: wrong",
                     id="defaults"),
        pytest.param("schema_version: 1\ndefaults: {}\n", 1, "scenarios: missing",
                     id="only defaults"),
        pytest.param("- a\n", 1, "expected: a mapping", id="list"),
        pytest.param("text\n", 1, "expected: a mapping", id="text"),
        pytest.param("a: 1\nb: [1\nc: 2\n", 3, "broken YAML", id="bracket"),
        pytest.param("a:\n\tb: 1\n", 2, "spaces, not tabs", id="tab"),
        pytest.param("a: *b\n", 1, "found undefined alias", id="alias"),
        pytest.param("a: 1\n---\nb: 2\n", 2, "broken YAML", id="two documents"),
        pytest.param("a: &a [*a]\n", 1, "a value that contains itself", id="loop"),
        pytest.param("a: \x07\n", 1, "broken YAML", id="control character"),
        pytest.param(b"a: 1\nb: \xff\n", 2, "not UTF-8 text\n  found: byte 0xff", id="latin-1"),
        pytest.param("a: !!binary aGk=\n", 1, "a kind of value", id="binary"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_told(
    content: str | bytes, line: int | None, words: str, write: Write
) -> None:
    file = write(content)
    told = [str(error) for error in errors_of(file) if words in str(error)]
    assert told
    assert told[0].startswith(f"{file}:{line}: " if line else f"{file}: ")


def test_broken_yaml_is_told_with_its_column(write: Write) -> None:
    (error,) = errors_of(write("a: 1\nbb: 'x\n"))
    assert "column" in str(error)


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
    lambda text: found_in(text) is None
)
NAME = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.-]{0,6}", fullmatch=True)  # of a file, image or host
COUNT = st.integers(1, 10**6)
FRACTION = st.floats(0.001, 0.999)
FLAG = st.booleans()


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


SETTINGS = st.builds(
    EngineSettings,
    attention_dp=maybe(FLAG),
    max_batch_size=maybe(COUNT),
    kv_cache_fraction=maybe(FRACTION),
    kv_cache_dtype=maybe(TEXT),
    mtp=maybe(st.builds(Mtp, st.integers(0, 3))),
    cuda_graphs=maybe(
        st.builds(CudaGraphs, FLAG, maybe(FLAG), st.lists(COUNT).map(tuple), maybe(COUNT))
    ),
    moe_load_balancer=maybe(st.builds(MoeLoadBalancer, COUNT, st.integers(0, 9))),
    stream_interval=maybe(COUNT),
    pdl=maybe(FLAG),
    iteration_log=maybe(FLAG),
    trust_remote_code=maybe(FLAG),
)
WORKLOADS = st.builds(
    Workload,
    client=TEXT,
    dataset=st.sampled_from(["synthetic", "real", "sharegpt"]),
    isl=COUNT,
    osl=COUNT,
    concurrency=st.sets(COUNT, min_size=1, max_size=5).map(lambda s: tuple(sorted(s))),
    requests_per_concurrency=COUNT,
    warmup_per_concurrency=st.integers(0, 5),
    warmup_requests=maybe(st.integers(0, 5)),
    ignore_eos=FLAG,
    seed=st.integers(0, 10**6),
    max_request_rate=maybe(st.floats(0.1, 1000)),
    api=st.sampled_from(["completions", "chat"]),
)
SCENARIOS = st.builds(
    Scenario,
    id=st.from_regex("[a-z0-9]+(-[a-z0-9]+){0,3}", fullmatch=True),
    title=TEXT,
    source=st.builds(Source, TEXT, TEXT, engine_version=maybe(TEXT)),
    hardware=st.just(Hardware("none", 0)),
    model=st.builds(
        Model,
        NAME,
        TEXT,
        folder=maybe(NAME),
        weights=maybe(st.builds(Weights, COUNT, COUNT)),
        quantization=maybe(st.dictionaries(TEXT, TEXT, max_size=2)),
    ),
    engine=st.builds(EngineChoice, TEXT, SETTINGS),
    workload=WORKLOADS,
    accuracy=st.lists(
        st.builds(
            AccuracyTask,
            evaluator=TEXT,
            task=st.just("gsm8k"),
            fewshot=st.integers(0, 8),
            temperature=st.floats(0, 2),
            add_special_tokens=maybe(FLAG),
            extra_body=st.dictionaries(TEXT, FLAG | COUNT | FRACTION | TEXT, max_size=3),
        ),
        max_size=1,
    ).map(tuple),
    gate=st.builds(
        GatePolicy,
        st.just(("output_throughput",)),
        st.dictionaries(st.just("output_throughput"), FRACTION),
        st.sampled_from(["stored", "self"]),
        max_starts=COUNT,
    ),
    limits=st.builds(Limits, st.floats(1, 99), st.floats(1, 99), st.floats(100, 999)),
    environment=st.dictionaries(st.from_regex("X[A-Z_]{1,9}", fullmatch=True), TEXT, max_size=3),
    smoke=maybe(
        st.builds(Smoke, TEXT, st.lists(TEXT, min_size=1, max_size=3).map(tuple), maybe(COUNT))
    ),
    launch=maybe(
        st.builds(
            Launch,
            st.sampled_from(["mpirun", "srun", "sbatch"]),
            output=maybe(NAME),
            ssh_port=maybe(COUNT),
            time_limit=maybe(st.just("02:00:00")),
            pass_on=st.dictionaries(st.from_regex("x[a-z_]{1,9}", fullmatch=True), TEXT),
        )
    ),
    container=maybe(st.builds(Container, NAME, maybe(NAME))),
    listen=maybe(st.builds(Listen, NAME, st.integers(1, 65535))),
    floors=st.lists(st.builds(Floor, st.just("duration_s"), st.floats(0, 9)), max_size=2).map(
        tuple
    ),
    markers=st.lists(st.sampled_from(["serving", "latency"]), unique=True).map(tuple),
)


@given(scenario=SCENARIOS)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_shown_of_a_scenario_can_be_read_back(
    scenario: Scenario, tmp_path_factory: pytest.TempPathFactory
) -> None:
    plain = scenario_to_plain(scenario)
    told_hash = plain.pop("content_hash")
    document = {"schema_version": 1, "scenarios": [plain]}
    Draft202012Validator(SCHEMA).validate(document)
    file = tmp_path_factory.getbasetemp() / "round-trip.yaml"
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    (read,) = load_scenarios(file)
    assert read == scenario
    assert read.content_hash() == scenario.content_hash() == told_hash


@given(data=st.data(), scenario=SCENARIOS)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_the_schema_refuses_is_never_read(
    data: st.DataObject, scenario: Scenario, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One value anywhere is replaced; if jsonschema refuses the file, so does `load_scenarios`."""
    plain: Any = scenario_to_plain(scenario)
    del plain["content_hash"]
    document = {"schema_version": 1, "scenarios": [plain]}
    where: Any = document
    key: Any = "scenarios"
    while isinstance(where[key], dict | list) and where[key] and data.draw(FLAG | st.just(True)):
        where = where[key]
        key = data.draw(
            st.sampled_from(sorted(where) if isinstance(where, dict) else range(len(where)))
        )
    where[key] = data.draw(st.sampled_from([None, True, 0, -1, 2.5, "", "no such", [], {}, [1]]))
    refused = not Draft202012Validator(SCHEMA).is_valid(document)
    file = tmp_path_factory.getbasetemp() / "replaced.yaml"
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    if refused:
        assert all(error.file == file and error.line for error in errors_of(file))
        return
    with suppress(SeveralInputErrors):  # the rules may refuse more
        load_scenarios(file)
