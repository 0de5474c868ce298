"""What a rendered command gives is held against what a build accepts; what is told is sure."""

from collections.abc import Mapping
from typing import Any

import msgspec
import yaml
from tables import each

from perfgate.core.programs.command import Command
from perfgate.engines.definitions import Definitions, KeyDefinition, OptionDefinition
from perfgate.engines.option_check import Mismatch
from perfgate.engines.tensorrt_llm.definition_check import mismatches
from perfgate.engines.tensorrt_llm.llm_api_yaml import FILE

OPTIONS = {
    "model": OptionDefinition(("model",), kind="argument", required=True),
    "port": OptionDefinition(("--port",), kind="integer"),
    "share": OptionDefinition(("--share", "-s"), kind="number"),
    "backend": OptionDefinition(("--backend",), choices=("pytorch", "_autodeploy")),
    "trust": OptionDefinition(("--trust",), kind="flag", off=("--no-trust",)),
    "sizes": OptionDefinition(("--sizes",), kind="integer", many=True),
}
CONFIG = {
    "enable": KeyDefinition(types=("bool",)),
    "sizes": KeyDefinition(types=("list", "null")),
    "backend": KeyDefinition(choices=("CUTLASS", "TRTLLM")),
}
MTP = {"decoding_type": KeyDefinition(choices=("MTP",)), "layers": KeyDefinition(types=("int",))}
EAGLE = {"decoding_type": KeyDefinition(choices=("Eagle",)), "depth": KeyDefinition(types=("int",))}
KEYS = {
    "interval": KeyDefinition(types=("int",)),
    "graphs": KeyDefinition(types=("Graphs", "null"), models={"Graphs": CONFIG}),
    "moe": KeyDefinition(types=("Graphs",), models={"Graphs": CONFIG}),
    "draft": KeyDefinition(types=("MtpConfig", "EagleConfig"), models={"M": MTP, "E": EAGLE}),
    "free": KeyDefinition(types=("any",)),
    "name": KeyDefinition(types=("str",), choices=("auto",)),
}
BUILD = Definitions(
    "tensorrt-llm",
    "1.3.0",
    "a test",
    True,
    {"trtllm-serve serve": OPTIONS},
    keys=KEYS,
    unknown_keys="refused",
    exact_types=True,
)


def of_options(*words: str, build: Definitions = BUILD) -> list[tuple[str, str]]:
    found = mismatches(Command(("trtllm-serve", *words)), build)
    return [(one.place, one.problem) for one in found]


def of_keys(tree: Mapping[str, Any], build: Definitions = BUILD) -> list[Mismatch]:
    text = yaml.safe_dump(tree)
    return list(mismatches(Command(("trtllm-serve", "m"), files={FILE: text}), build))


class TestOptions:
    def test_what_the_program_takes_is_clean(self) -> None:
        assert of_options("m", "--port", "80", "--trust") == []
        assert of_options("m", "--port=80", "--share", "-1", "-s", "0.5") == []
        assert of_options("m", "--no-trust", "--sizes", "1", "-2", "--port", "1") == []
        assert mismatches(Command(("trtllm-bench", "--anything")), BUILD) == (), "no page"

    @each(
        ("words", "place", "problem"),
        [
            (("m", "--prot", "80"), "--prot", "no such option"),
            (("m", "--prot=80"), "--prot", "no such option"),
            (("m", "--backend", "tensorrt"), "--backend", "no such choice"),
            (("m", "--backend=tensorrt"), "--backend", "no such choice"),
            (("m", "--port", "eighty"), "--port", "not a value of kind integer"),
            (("m", "--port"), "--port", "is given no value"),
            (("m", "--trust=yes"), "--trust", "takes no value"),
            (("m", "--sizes", "1", "x"), "--sizes", "not a value of kind integer"),
            (("--port", "80"), "model", "is required and not given"),
        ],
    )
    def test_what_it_does_not_take_is_told(
        self, words: tuple[str, ...], place: str, problem: str
    ) -> None:
        assert of_options(*words) == [(place, problem)]


class TestKeys:
    def test_what_the_model_takes_is_clean(self) -> None:
        assert of_keys({"interval": 10, "graphs": None, "free": {"a": [1]}, "name": "any"}) == []
        assert of_keys({"interval": "10", "graphs": {"enable": True, "sizes": [1, 2]}}) == []
        assert of_keys({"draft": {"decoding_type": "MTP", "layers": 3}}) == []

    @each(
        ("tree", "place", "problem"),
        [
            ({"intervall": 1}, "intervall", "no such key"),
            ({"graphs": {"enabled": True}}, "graphs.enabled", "no such key"),
            ({"moe": {"backend": "DEEPGEMM"}}, "moe.backend", "no such choice"),
            ({"moe": None}, "moe", "null where it takes none"),
            ({"interval": [1]}, "interval", "a list where it takes none"),
            ({"interval": {"a": 1}}, "interval", "a mapping where it takes none"),
            ({"interval": "ten"}, "interval", "not a value of its type"),
            ({"graphs": True}, "graphs", "a single value where it takes none"),
            ({"graphs": {"sizes": 1}}, "graphs.sizes", "a single value where it takes none"),
            ({"draft": {"decoding_type": "Medusa"}}, "draft.decoding_type", "no such choice"),
            ({"draft": {"decoding_type": "MTP", "depth": 3}}, "draft.depth", "no such key in M"),
        ],
    )
    def test_what_it_does_not_take_is_told(
        self, tree: dict[str, Any], place: str, problem: str
    ) -> None:
        assert [(one.place, one.problem) for one in of_keys(tree)] == [(place, problem)]

    @each(
        ("draft", "told"),
        [
            ({"decoding_type": "MTP", "layers": 1}, []),
            ({"decoding_type": "MTP", "depth": 1}, ["no such key in MTPDecodingConfig"]),
            ({"decoding_type": "Medusa", "layers": 1}, ["no such choice"]),
        ],
    )
    def test_where_no_model_tells_its_tag_its_name_does(
        self, draft: dict[str, Any], told: list[str]
    ) -> None:
        models = {
            "MTPDecodingConfig": {"layers": KeyDefinition()},
            "EagleDecodingConfig": {"depth": KeyDefinition()},
        }
        build = msgspec.structs.replace(BUILD, keys={"draft": KeyDefinition(models=models)})
        assert [one.problem for one in of_keys({"draft": draft}, build)] == told

    def test_a_key_that_would_be_dropped_says_so(self) -> None:
        (found,) = of_keys({"x": 1}, msgspec.structs.replace(BUILD, unknown_keys="ignored"))
        assert found.problem == "no such key: it would be ignored without a word"

    def test_types_that_are_not_exact_are_not_judged(self) -> None:
        loose = msgspec.structs.replace(BUILD, exact_types=False)
        assert of_keys({"interval": [1], "moe": None}, loose) == []
