"""Extra options of a scenario: read, merged, hashed and told; what they may be is a rule's."""

from dataclasses import replace

from building import SCENARIO
from tables import each
from written_files import GOOD, Write, assert_told, changed, with_defaults

from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.rules.extra_options import (
    describe_extra_options,
    extra_keys,
    extra_options,
    leaves,
)
from perfgate.scenarios.scenario import EngineChoice, Scenario

SESAME = "open" + "sesame"  # what somebody gave as a key

EXTRA = EngineChoice(
    "any",
    extra_yaml={"cache": {"reuse": True, "sizes": [1, 2.5], "more": {}}, "workers": 4},
    extra_args={"server": ("--workers", 4, "--share", 0.25, "--flag", "--low=-1", "-2")},
)


def of(**extra: object) -> Scenario:
    return replace(SCENARIO, engine=replace(SCENARIO.engine, **extra))  # type: ignore[arg-type]


def test_options_have_the_values_behind_them() -> None:
    found = list(extra_options(EXTRA))
    assert [option.words for option in found] == [
        ("--workers", "4"),
        ("--share", "0.25"),
        ("--flag",),
        ("--low=-1", "-2"),
    ]
    assert [option.name for option in found] == ["--workers", "--share", "--flag", "--low"]
    assert [option.path[-1] for option in found] == [0, 2, 4, 5]
    assert list(extra_options(SCENARIO.engine)) == []


def test_keys_are_the_leaves_of_the_mapping() -> None:
    assert dict(extra_keys(EXTRA)) == {
        ("cache", "reuse"): True,
        ("cache", "sizes"): [1, 2.5],
        ("cache", "more"): {},
        ("workers",): 4,
    }
    assert list(leaves({})) == []


def test_they_are_told_in_one_line() -> None:
    assert describe_extra_options(EXTRA) == (
        "server --workers 4 --share 0.25 --flag --low=-1 -2; "
        "cache.reuse: true; cache.sizes: [1, 2.5]; cache.more: {}; workers: 4"
    )
    assert describe_extra_options(SCENARIO.engine) == ""


def test_a_secret_among_them_is_not_told() -> None:
    token = "hf_" + "a1B2" * 9
    engine = EngineChoice(
        "any",
        extra_yaml={"hub": {"api_key": SESAME, "site": f"https://me:{token}@host/"}},
        extra_args={"server": ("--hf_token", SESAME, f"--api-key={token}")},
    )
    told = describe_extra_options(engine)
    assert SESAME not in told
    assert token not in told
    assert "hub.api_key: ***" in told
    assert "--hf_token ***" in told


def test_they_are_part_of_the_content() -> None:
    given = [{"extra_yaml": {"a": value}} for value in (1, 2, {})]
    given += [{"extra_args": {program: ("--a", 1)}} for program in ("server", "other")]
    plain = SCENARIO.content_hash()
    assert len({plain, *(of(**extra).content_hash() for extra in given)}) == 6
    assert of(extra_yaml=None, extra_args=None).content_hash() == plain


def test_the_defaults_are_merged_as_mappings(write: Write) -> None:
    text = with_defaults(
        "    engine: {extra_yaml: {cache: {sizes: [3], more: x}, workers: null},\n"
        "             extra_args: {server: [--a, 2]}}",
        (
            "llama.cpp\n",
            "llama.cpp\n      extra_yaml: {cache: {reuse: true, sizes: [1, 2]}, workers: 4}\n"
            "      extra_args: {server: [--a, 1], client: [--b]}\n",
        ),
    )
    (scenario, _) = load_scenarios(write(text))
    assert scenario.engine.extra_yaml == {"cache": {"reuse": True, "sizes": [3], "more": "x"}}
    assert scenario.engine.extra_args == {"server": ("--a", 2), "client": ("--b",)}


@each(
    ("extra", "field", "words"),
    [
        ("extra_yaml: [a]", "engine.extra_yaml", "a mapping"),
        ("extra_yaml: {}", "engine.extra_yaml", "not empty"),
        ("extra_args: [--a]", "engine.extra_args", "a mapping"),
        ("extra_args: {server: --a 4}", "engine.extra_args.server", "a list"),
        ("extra_args: {server: [--a, true]}", "engine.extra_args.server[1]", "text or a number"),
        ("extra_args: {server: ['']}", "engine.extra_args.server[0]", "empty"),
        ("extra_args: {'ser ver': [--a]}", "engine.extra_args.ser ver", "name of a program"),
        (r'extra_args: {server: ["--a\n"]}', "engine.extra_args.server[0]", "control character"),
        (r'extra_yaml: {a: "\e[2J"}', "engine.extra_yaml.a", "control character"),
        (r'extra_yaml: {"a\u202e": 1}', "engine.extra_yaml.a\\u202e", "control character"),
        ("extra_yaml: {a: .nan}", "engine.extra_yaml.a", "finite"),
        ("extra_yaml: {a: 2026-01-01}", "engine.extra_yaml.a", "kind of value"),
        ("extra_yaml: {a: [1, null]}", "engine.extra_yaml.a[1]", "takes away"),
    ],
)
def test_what_they_cannot_be(extra: str, field: str, words: str, write: Write) -> None:
    text, line = changed(GOOD, ("name: llama.cpp", f"name: llama.cpp\n      {extra}"))
    assert_told(write(text), line, f"scenarios[0].{field}: ", words)
