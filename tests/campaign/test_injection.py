from dataclasses import replace
from typing import Any

import pytest
from building import SCENARIO
from tables import each

from perfgate.campaign.injection import Injection, inject, parse
from perfgate.core.errors import InputError
from perfgate.scenarios.scenario import AccuracyTask


@each(
    ("text", "path", "value"),
    [
        ("engine.settings.cpu_threads=1", ("engine", "settings", "cpu_threads"), 1),
        ("accuracy.temperature=1.5", ("accuracy", "temperature"), 1.5),
        ("workload.streaming=false", ("workload", "streaming"), False),
        ("engine.settings.moe_backend=CUTLASS", ("engine", "settings", "moe_backend"), "CUTLASS"),
        ("title=a=b", ("title",), "a=b"),
        ("workload.isl=", ("workload", "isl"), None),
        ("title='7'", ("title",), "7"),
    ],
)
def test_reads_key_and_value(text: str, path: tuple[str, ...], value: object) -> None:
    injection = parse(text)
    assert (injection.path, injection.value) == (path, value)
    assert type(injection.value) is type(value)


@each(
    "text",
    ["", "=", "=1", "cpu_threads", "title=[1", "title=a: b: c", "t=@", "environment={A: b}"]
    + ["workload.isl=010", "title=2020-99-99", "title=&a [*a]"]
    + ["title=" + "[" * 900, "workload.isl=" + "1" * 900],
    ids=lambda text: text[:20],
)
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--inject: not a setting") as caught:
        parse(text)
    assert caught.value.found == repr(text)


@each("value", ["[" * 50_000, "1" * 6000, "- " * 50_000], ids=["lists", "digits", "items"])
def test_a_value_of_any_length_is_refused(value: str) -> None:
    with pytest.raises(InputError, match="--inject: not a setting") as caught:
        parse(f"workload.isl={value}")
    assert len(str(caught.value)) < 1200


def changed(text: str) -> Any:
    return inject(SCENARIO, (parse(text),))


def test_changes_one_setting_and_nothing_else() -> None:
    slowed = changed("engine.settings.cpu_threads=1")
    assert slowed.engine.settings.cpu_threads == 1
    assert SCENARIO.engine.settings.cpu_threads == 2
    settings = replace(slowed.engine.settings, cpu_threads=2)
    assert replace(slowed, engine=replace(slowed.engine, settings=settings)) == SCENARIO


def test_several_settings_are_all_changed() -> None:
    both = (parse("workload.isl=8"), parse("workload.osl=9"), parse("workload.isl=7"))
    load = inject(SCENARIO, both).workload
    assert load is not None
    assert (load.isl, load.osl) == (7, 9)


def test_reaches_every_accuracy_task() -> None:
    two = replace(SCENARIO, accuracy=(*SCENARIO.accuracy, AccuracyTask("lm_eval", "gsm8k", 8)))
    tasks = inject(two, (parse("accuracy.temperature=2"),)).accuracy
    assert [(task.task, task.temperature) for task in tasks] == [("sums", 2), ("gsm8k", 2)]


@each(
    ("text", "expected"),
    [
        ("engine.settings.cpu_thread=1", "after engine.settings one of tp, pp, ep, "),
        ("id.x=1", "after id one of nothing"),
        ("environment.OMP_NUM_THREADS=1", "after environment one of nothing"),
        ("..=1", "after the start one of id, "),
    ],
)
def test_a_name_that_does_not_exist_lists_those_that_do(text: str, expected: str) -> None:
    with pytest.raises(InputError, match="--inject: no such setting") as caught:
        changed(text)
    assert str(caught.value.expected).startswith(expected)
    assert caught.value.found == text


@each(
    ("text", "expected"),
    [
        ("engine.settings.cpu_threads=fast", "int or null"),
        ("engine.settings.cpu_threads=1.5", "int or null"),
        ("engine.settings.tp=", "int"),
        ("engine.settings.attention_dp=1", "true or false or null"),
        ("engine.settings.mtp=1", "one of its own settings or null"),
        ("workload.api=grpc", "'completions' or 'chat'"),
        ("workload.concurrency=4", "one of its own settings"),
        ("accuracy.temperature=hot", "float"),
        ("title=1", "text"),
    ],
)
def test_a_value_of_another_type_is_refused(text: str, expected: str) -> None:
    with pytest.raises(InputError, match="--inject: not a value of this setting") as caught:
        changed(text)
    assert caught.value.expected == expected


@each(
    "text",
    ["engine.settings.cpu_threads=", "engine.settings.kv_cache_fraction=1", "engine.settings.mtp="]
    + ["accuracy.temperature=2", "workload.api=chat", "workload.max_request_rate=0.5"],
)
def test_a_value_of_the_right_type_is_taken(text: str) -> None:
    injection: Injection = parse(text)
    value = inject(SCENARIO, (injection,))
    for name in injection.path:
        value = getattr(value[0] if isinstance(value, tuple) else value, name)
    assert value == injection.value


def test_what_is_recorded_of_an_injection_has_no_secret() -> None:
    assert str(parse("environment.HF_TOKEN=opaque one")) == "environment.HF_TOKEN=***"
    assert str(parse("engine.settings.url=https://a:b@c")) == "engine.settings.url=https://***@c"
    assert str(parse("limits.start_s=7")) == "limits.start_s=7"
