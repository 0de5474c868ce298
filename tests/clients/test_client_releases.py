"""Load clients render what each release's own page knows, and refuse what that release cannot do.

The pages are recorded from the releases' own parsers; they know nothing of the clients' tables.
"""

import json
from dataclasses import replace
from functools import cache

import msgspec
import pytest
from refusals import refused
from tables import each

from perfgate.clients.base import Client, Target
from perfgate.clients.releases import SGLANG, VLLM, release
from perfgate.clients.serving_clients import SglangBench, VllmBench, VllmBenchmarkServing
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import Endpoint
from perfgate.engines.definitions import Definitions
from perfgate.engines.option_check import Call, of_call
from perfgate.rehearsal.recorded_pages import FOLDER
from perfgate.scenarios.scenario import LoadPoint, Workload

MODEL = "deepseek-ai/DeepSeek-R1-0528"
RANDOM = Workload("any", "synthetic", isl=4000, osl=200, concurrency=(500,), requests=500)
SHAREGPT = replace(RANDOM, dataset="sharegpt", isl=None, osl=None)
POINT = LoadPoint(500, 500, 0, seed=42, capped=False)
CAPPED = LoadPoint(4, 100, 0, seed=0)
WORKLOADS = {
    "random": RANDOM,
    "random, EOS counts": replace(RANDOM, ignore_eos=False),
    "random, chat": replace(RANDOM, api="chat"),
    "random, chat, EOS counts": replace(RANDOM, api="chat", ignore_eos=False),
    "random, not streamed": replace(RANDOM, streaming=False),
    "random, at a rate": replace(RANDOM, max_request_rate=2.5),
    "sharegpt": replace(SHAREGPT, ignore_eos=False),
    "sharegpt, chat": replace(SHAREGPT, ignore_eos=False, api="chat"),
    "sharegpt, EOS ignored": SHAREGPT,
}
# Client, release of its page, the program there, its words on the command line.
CLIENTS: list[tuple[type[Client], str, str, str]] = [
    (VllmBenchmarkServing, "vllm_0.6.6.post1", "benchmark_serving.py", "benchmark_serving.py"),
    (VllmBenchmarkServing, "vllm_0.8.5", "benchmark_serving.py", "benchmark_serving.py"),
    (VllmBench, "vllm_0.8.5", "vllm bench serve", "vllm bench serve"),
    (VllmBench, "vllm_0.11.0", "vllm bench serve", "vllm bench serve"),
    (VllmBench, "vllm_0.32.0", "vllm bench serve", "vllm bench serve"),
    (VllmBench, "vllm_0.33.0", "vllm bench serve", "vllm bench serve"),
    (SglangBench, "sglang_0.4.6", "sglang.bench_serving", "python3 -m sglang.bench_serving"),
    (SglangBench, "sglang_0.5.3", "sglang.bench_serving", "python3 -m sglang.bench_serving"),
    (SglangBench, "sglang_0.5.23", "sglang.bench_serving", "python3 -m sglang.bench_serving"),
]
# What a release cannot do, by client, release and field: all else must be rendered.
VLLM_STREAMS = {"random, not streamed": "workload.streaming"}
YOUNG = dict.fromkeys(("sharegpt", "sharegpt, EOS ignored"), "workload.dataset")
CHAT = {name: "workload.api" for name in WORKLOADS if "chat" in name}
REFUSED = {
    (VllmBenchmarkServing, "vllm_0.6.6.post1"): VLLM_STREAMS,
    (VllmBenchmarkServing, "vllm_0.8.5"): VLLM_STREAMS,
    (VllmBench, "vllm_0.8.5"): {**VLLM_STREAMS, **YOUNG, **CHAT},
    (VllmBench, "vllm_0.11.0"): VLLM_STREAMS,
    (VllmBench, "vllm_0.32.0"): VLLM_STREAMS,
    (VllmBench, "vllm_0.33.0"): VLLM_STREAMS,
    (SglangBench, "sglang_0.4.6"): CHAT,
}


@cache
def page(name: str) -> Definitions:
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Definitions)


def target(version: str) -> Target:
    return Target(
        Endpoint("127.0.0.1", 8000, MODEL), "/models/R1", Locations(on_paper=True), version
    )


def words(
    client: type[Client], version: str, workload: Workload = RANDOM, point: LoadPoint = POINT
) -> tuple[str, ...]:
    return client().command(target(version), workload, point).argv


def value(argv: tuple[str, ...], option: str) -> str:
    assert argv.count(option) == 1, argv
    return argv[argv.index(option) + 1]


@each("point", [POINT, CAPPED], ids=["all at once", "capped"])
@each("kind", WORKLOADS)
@each(("client", "name", "program", "called"), CLIENTS)
def test_every_release_knows_all_that_it_is_given(
    client: type[Client], name: str, program: str, called: str, kind: str, point: LoadPoint
) -> None:
    told = page(name)
    field = REFUSED.get((client, name), {}).get(kind)
    if field is not None:
        load, cannot = WORKLOADS[kind], "of this release cannot do it"
        error = refused(words, client, told.version, load, point, match=cannot)
        assert error.field == field
        assert told.version in str(error)
        assert "workload; docs/reference/parse.md lists" in error.hint
        return
    argv = words(client, told.version, WORKLOADS[kind], point)
    prefix = tuple(called.split())
    assert argv[: len(prefix)] == prefix
    call = Call(program, (), argv[len(prefix) :], program)
    assert not list(of_call(call, told))


def test_the_check_sees_what_a_release_does_not_know() -> None:
    argv = words(VllmBench, "0.33.0", replace(RANDOM, ignore_eos=False))
    call = Call("vllm bench serve", (), argv[3:], "vllm bench serve")
    assert {found.place for found in of_call(call, page("vllm_0.11.0"))} == {"--extra-body"}


RATIO, ZERO = "--random-range-ratio", "--temperature"
WARM = replace(CAPPED, warmup_requests=4)


@each(
    ("client", "version", "option", "expected"),
    [
        # The ratio that means one length.
        (VllmBenchmarkServing, "0.6.6.post1", RATIO, "1.0"),
        (VllmBenchmarkServing, "0.8.3", RATIO, "1.0"),
        (VllmBenchmarkServing, "0.8.5", RATIO, "0.0"),
        (VllmBench, "0.8.5", RATIO, "1.0"),  # the other client of the same release
        (VllmBench, "0.9.0", RATIO, "1.0"),
        (VllmBench, "0.9.1", RATIO, "0.0"),
        (VllmBench, "0.33.0", RATIO, "0.0"),
        (SglangBench, "0.4.6", RATIO, "1.0"),
        (SglangBench, "0.5.23", RATIO, "1.0"),
        # From 0.16 on the server's own default would be used, of newer models above 0.
        (VllmBench, "0.11.0", ZERO, "0"),
        (VllmBench, "0.33.0", ZERO, "0"),
        (VllmBench, "0.8.5", ZERO, None),  # it sends 0 itself
        (VllmBenchmarkServing, "0.6.6.post1", ZERO, None),
        # Before 0.14 the client waits for a first good answer by itself.
        (VllmBench, "0.11.0", "--ready-check-timeout-sec", None),
        (VllmBench, "0.14.0", "--ready-check-timeout-sec", "60"),
        (SglangBench, "0.5.3", "--dataset-name", "random-ids"),  # needs no network
        (VllmBench, "0.8.5", "--endpoint-type", "openai-comp"),
    ],
)
def test_an_option_of_a_release(client, version, option, expected) -> None:
    argv = words(client, version)
    assert (value(argv, option) if option in argv else None) == expected


@each("version", ["0.4.6", "0.5.3", "0.5.23"])
@each("ignore", [True, False])
def test_sglang_is_told_both_in_every_request(version: str, ignore: bool) -> None:
    argv = words(SglangBench, version, replace(RANDOM, ignore_eos=ignore))
    body = json.loads(value(argv, "--extra-request-body"))
    assert body == {"temperature": 0, "ignore_eos": ignore}
    assert ("--disable-ignore-eos" in argv) != ignore


@pytest.mark.parametrize("version", ["0.11.1", "0.12.0", "0.33.0"])
def test_vllm_that_ignores_eos_unasked_is_told_not_to(version: str) -> None:
    argv = words(VllmBench, version, replace(RANDOM, ignore_eos=False))
    assert "--ignore-eos" not in argv
    assert json.loads(value(argv, "--extra-body")) == {"ignore_eos": False}
    assert "--extra-body" not in words(VllmBench, version, WORKLOADS["sharegpt"])


@pytest.mark.parametrize("version", ["0.8.5", "0.11.0"])
def test_warm_up_requests_that_a_release_does_not_make_are_refused(version: str) -> None:
    error = refused(words, VllmBench, version, point=WARM)
    assert (error.field, error.found) == ("workload.warmup_requests", 4)


def test_warm_up_requests() -> None:
    assert value(words(VllmBench, "0.12.0", point=WARM), "--num-warmups") == "4"
    assert value(words(SglangBench, "0.4.6", point=WARM), "--warmup-requests") == "4"
    assert value(words(SglangBench, "0.4.6"), "--warmup-requests") == "0"  # 1 unless told


def test_the_protocol_is_named_as_the_release_names_it() -> None:
    chat = WORKLOADS["sharegpt, chat"]
    assert value(words(VllmBench, "0.10.2", chat), "--endpoint-type") == "openai-chat"
    assert value(words(VllmBench, "0.11.0", chat), "--backend") == "openai-chat"
    assert value(words(SglangBench, "0.5.3", chat), "--backend") == "vllm-chat"


@pytest.mark.parametrize("client", [VllmBench, VllmBenchmarkServing, SglangBench])
def test_prompts_of_a_person_s_own_are_refused(client: type[Client]) -> None:
    real = replace(RANDOM, dataset="real")
    refused(words, client, "", real, match="does not support these prompts")


class TestWhichRelease:
    @each(
        ("client", "version", "told", "expected"),
        [
            # A script that only says it is gone, and a command that was not there yet.
            (VllmBenchmarkServing, "0.11.0", "no usable", "0.6.6 or later, before 0.10.2"),
            (VllmBench, "0.7.3", "no usable vllm bench serve", "0.8.0 or later"),
            (VllmBench, "0.5.0", "is too old", ""),
            (SglangBench, "0.3", "is too old", ""),
            (SglangBench, "dev", "not a version of SGLang's load client", ""),
        ],
    )
    def test_a_release_that_cannot_do_it(self, client, version, told, expected) -> None:
        error = refused(words, client, version, match=told)
        assert error.field == "client version"
        assert expected in (error.expected, "")

    def test_unknown_is_the_newest_that_has_the_program(self) -> None:
        assert release(VLLM, "", "vllm bench serve").since == VLLM.all()[-1].since
        assert release(VLLM, "", "benchmark_serving.py").since == "0.9.1"
        assert release(SGLANG, "", "sglang.bench_serving").since == SGLANG.all()[-1].since

    def test_a_build_for_cpus_is_its_release(self) -> None:
        assert words(VllmBench, "0.32.0+cpu") == words(VllmBench, "0.32.0")

    @pytest.mark.parametrize(("version", "by"), [("0.19.0", "client"), ("0.20.2", "server")])
    def test_who_counts_input_tokens(self, version: str, by: str) -> None:
        assert VllmBench().options(target(version)).table.input_counted_by == by
