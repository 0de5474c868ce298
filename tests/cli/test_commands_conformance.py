"""`perfgate conformance`: the scenarios held against made-up sources, with and without drifts."""

import json
import zipfile
from pathlib import Path
from typing import Any

import made_release
import pytest
import yaml

from perfgate.cli.main import main

Capture = pytest.CaptureFixture[str]
SCENARIOS = str(Path(__file__).parents[2] / "scenarios")
SHAPES = ("0.20.0", "1.1.0", "1.3.0rc3")
BENCH = "tensorrt_llm/bench/benchmark/throughput.py"
SERVE = "tensorrt_llm/commands/serve.py"
MODEL = "tensorrt_llm/llmapi/llm_args.py"
CONFIG = "tensorrt_llm/_torch/pyexecutor/config.py"


def checked(source: Path, *words: str) -> int:
    return main(["conformance", "--source", str(source), "--scenarios", SCENARIOS, *words])


def told(capsys: Capture, source: Path, status: int) -> dict[str, Any]:
    assert checked(source, "--format", "json") == status
    return dict(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize("version", SHAPES)
def test_a_tree_that_did_not_drift_is_clean(tmp_path: Path, capsys: Capture, version: str) -> None:
    found = told(capsys, made_release.write(tmp_path, version), 0)
    assert found["version"] == version
    assert (found["mismatches"], found["moved_defaults"]) == ([], [])
    assert found["read"]["unread"] == []
    assert found["checked"]["unchecked"] == {}
    assert found["checked"]["calls"] > found["checked"]["scenarios"] > 20
    assert found["checked"]["files"] > 20


Drift = tuple[str, str, str, str, str, str]
DRIFTS: list[Drift] = [
    # release, file, what is replaced, by what → place, problem
    ("0.20.0", BENCH, "--num_requests", "--request_count", "--num_requests", "no such option"),
    ("1.1.0", BENCH, "--num_requests", "--requests", "--num_requests", "no such option"),
    ("1.3.0rc3", BENCH, "--num_requests", "--requests", "--num_requests", "no such option"),
    ("1.3.0rc3", SERVE, '["pytorch", "t', '["torch", "t', "--backend", "no such choice"),
    (
        "1.1.0",
        MODEL,
        '"TRTLLM", "DEEPGEMM"',
        '"TRTLLM", "DEEP_GEMM"',
        "moe_config.backend",
        "no such choice",
    ),
    (
        "0.20.0",
        CONFIG,
        "print_iter_log",
        "log_iterations",
        "pytorch_backend_config.print_iter_log",
        "no such key",
    ),
    (
        "1.3.0rc3",
        MODEL,
        "num_nextn_predict_layers: P",
        "max_draft: P",
        "speculative_config.num_nextn_predict_layers",
        "no such key in MTPDecodingConfig",
    ),
    ("1.3.0rc3", MODEL, "print_iter_log: bool", "iter_log: bool", "print_iter_log", "no such key"),
    (
        "1.3.0rc3",
        MODEL,
        "batch_sizes: Optional[List[int]]",
        "batch_sizes: Optional[int]",
        "cuda_graph_config.batch_sizes",
        "a list where it takes none",
    ),
]


@pytest.mark.parametrize("drift", DRIFTS, ids=[f"{one[0]} {one[4]} {one[5]}" for one in DRIFTS])
def test_a_planted_drift_is_told(tmp_path: Path, capsys: Capture, drift: Drift) -> None:
    version, file, before, after, place, problem = drift
    tree = made_release.write(tmp_path, version, {file: (before, after)})
    (one,) = told(capsys, tree, 1)["mismatches"]
    assert (one["place"], one["problem"]) == (place, problem)
    assert one["asked_by"].startswith("releases/")
    line = int(one["asked_by"].rpartition(":")[2])
    assert line > 0
    assert one["scenarios"]


def test_an_option_that_became_required_is_told(tmp_path: Path, capsys: Capture) -> None:
    new = '@click.option("--tenant", required=True)\n@click.option("--streaming"'
    tree = made_release.write(tmp_path, "1.3.0rc3", {BENCH: ('@click.option("--streaming"', new)})
    (one,) = told(capsys, tree, 1)["mismatches"]
    assert (one["place"], one["problem"]) == ("--tenant", "is required and not given")


MOVED = [
    (BENCH, '"--enable_chunked_context/--disable_chunked_context", default=True',
     '"--enable_chunked_context/--disable_chunked_context", default=False',
     "--enable_chunked_context", "False", "True"),
    (BENCH, '"--warmup", type=int, default=2', '"--warmup", type=int, default=8',
     "--warmup", "8", "2"),
    (MODEL, "Optional[CudaGraphConfig] = Field(default_factory=CudaGraphConfig)",
     "Optional[CudaGraphConfig] = Field(default=None)", "cuda_graph_config", "off", "on"),
    (MODEL, "disable_overlap_scheduler: bool = Field(default=False)",
     "disable_overlap_scheduler: bool = Field(default=True)",
     "disable_overlap_scheduler", "True", "False"),
    (MODEL, 'sampler_type: Union[str, LoadFormat] = Field(default="auto")',
     'sampler_type: Union[str, LoadFormat] = Field(default="TRTLLMSampler")',
     "sampler_type", "trtllm", "torch"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "before", "after", "place", "found", "believed"), MOVED)
def test_a_default_that_moved_is_told(
    tmp_path: Path,
    capsys: Capture,
    file: str,
    before: str,
    after: str,
    place: str,
    found: str,
    believed: str,
) -> None:
    tree = made_release.write(tmp_path, "1.3.0rc3", {file: (before, after)})
    whole = told(capsys, tree, 1)
    (one,) = whole["moved_defaults"]
    assert (one["place"], one["found"], one["expected"]) == (place, found, believed)
    assert one["known_at"].startswith(file)
    assert whole["mismatches"] == []


def test_for_people_each_fact_has_its_place(tmp_path: Path, capsys: Capture) -> None:
    tree = made_release.write(
        tmp_path,
        "1.3.0rc3",
        {
            BENCH: ("--num_requests", "--num_request"),
            MODEL: ("stream_interval", "stream_interva"),
        },
    )
    assert checked(tree) == 1
    text = capsys.readouterr().out
    assert text.startswith(f"TensorRT-LLM 1.3.0rc3, sources at {tree}\nread: 9 programs with ")
    assert "\ntrtllm-bench throughput --num_requests: no such option\n" in text
    assert f"  expected: --num_request? ({BENCH}:" in text
    assert "  written by: releases/" in text
    assert "  needed by: b200-" in text
    assert "\nLLM-API YAML stream_interval: no such key\n" in text
    assert text.endswith("\n2 mismatches, 0 defaults moved\n")


def test_of_an_extra_option_the_scenarios_own_field_is_named(
    tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    source = Path(SCENARIOS) / "b200" / "deepseek_r1_best_practice.yaml"
    whole = yaml.safe_load(source.read_text())
    (one,) = [each for each in whole["scenarios"] if each["id"] == "b200-r1-fp4-min-latency"]
    one["engine"]["extra_yaml"] = {"new_knob": {"size": 3}}
    (folder / "own.yaml").write_text(yaml.safe_dump({**whole, "scenarios": [one], "claims": []}))
    tree = made_release.write(tmp_path / "tree", "1.1.0")
    words = ["conformance", "--source", str(tree), "--scenarios", str(folder), "--format", "json"]
    assert main(words) == 1, capsys.readouterr().err
    (found,) = json.loads(capsys.readouterr().out)["mismatches"]
    assert (found["place"], found["problem"]) == ("new_knob", "no such key")
    assert found["asked_by"] == "b200-r1-fp4-min-latency.engine.extra_yaml.new_knob"


class TestUnread:
    def test_a_computed_name_is_told_and_makes_others_unsure(
        self, tmp_path: Path, capsys: Capture
    ) -> None:
        tree = made_release.write(
            tmp_path, "1.3.0rc3", {BENCH: ('"--num_requests"', "option_name()")}
        )
        found = told(capsys, tree, 1)
        (unread,) = found["read"]["unread"]
        assert unread.startswith(f"trtllm-bench throughput: {BENCH}:")
        assert unread.endswith("option_name()")
        (one,) = found["mismatches"]
        assert (one["place"], one["is_sure"]) == ("--num_requests", False)

    def test_computed_choices_are_told_and_the_option_stays_known(
        self, tmp_path: Path, capsys: Capture
    ) -> None:
        tree = made_release.write(
            tmp_path, "1.3.0rc3", {BENCH: ("Choice(BACKENDS)", "Choice(find_backends())")}
        )
        found = told(capsys, tree, 0)
        assert "choices: find_backends()" in found["read"]["unread"][0]

    def test_a_base_class_from_elsewhere_makes_keys_unsure(
        self, tmp_path: Path, capsys: Capture
    ) -> None:
        tree = made_release.write(
            tmp_path,
            "1.3.0rc3",
            {MODEL: ("class TorchLlmArgs(BaseLlmArgs)", "class TorchLlmArgs(Other)")},
        )
        found = told(capsys, tree, 1)
        assert any("a base class of TorchLlmArgs: Other" in one for one in found["read"]["unread"])
        assert not any(one["is_sure"] for one in found["mismatches"])

    def test_programs_that_the_sources_lack_are_told(self, tmp_path: Path, capsys: Capture) -> None:
        tree = made_release.write(tmp_path, "1.3.0rc3")
        (tree / "examples/llm-api/quickstart_advanced.py").unlink()
        found = told(capsys, tree, 0)
        assert "quickstart_advanced.py" in found["checked"]["unchecked"]


def wheel(folder: Path, version: str) -> Path:
    path = folder / f"tensorrt_llm-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        for name, text in made_release.sources(version).items():
            file.writestr(name, text)
    return path


def test_a_wheel_is_read_as_a_folder_is(tmp_path: Path, capsys: Capture) -> None:
    from_wheel = told(capsys, wheel(tmp_path, "1.1.0"), 0)
    from_folder = told(capsys, made_release.write(tmp_path / "tree", "1.1.0"), 0)
    assert from_wheel == from_folder


class TestUnusable:
    """Status 2: nothing is claimed of what could not be read."""

    def test_an_empty_folder(self, tmp_path: Path, capsys: Capture) -> None:
        assert checked(tmp_path) == 2
        assert "no source tree of TensorRT-LLM" in capsys.readouterr().err

    def test_nothing_there(self, tmp_path: Path, capsys: Capture) -> None:
        assert checked(tmp_path / "none") == 2
        assert "No such file" in capsys.readouterr().err

    def test_no_wheel(self, tmp_path: Path, capsys: Capture) -> None:
        (tmp_path / "a.whl").write_text("no zip")
        assert checked(tmp_path / "a.whl") == 2
        assert "no wheel" in capsys.readouterr().err

    def test_a_version_and_nothing_else(self, tmp_path: Path, capsys: Capture) -> None:
        file = tmp_path / "tensorrt_llm/version.py"
        file.parent.mkdir()
        file.write_text('__version__ = "1.1.0"\n')
        assert checked(tmp_path) == 2
        assert "nothing was read" in capsys.readouterr().err

    def test_no_scenario_of_the_engine(self, tmp_path: Path, capsys: Capture) -> None:
        tree = made_release.write(tmp_path, "1.1.0")
        assert checked(tree, "local-*") == 2
        assert "nothing was checked" in capsys.readouterr().err

    def test_a_syntax_error_has_file_and_line(self, tmp_path: Path, capsys: Capture) -> None:
        tree = made_release.write(tmp_path, "1.1.0", {MODEL: ("class KvCacheConfig(", "class (")})
        assert checked(tree) == 2
        error = capsys.readouterr().err
        assert "not Python that can be read" in error
        assert f"{MODEL}:" in error

    def test_a_computed_version_needs_to_be_given(self, tmp_path: Path, capsys: Capture) -> None:
        tree = made_release.write(
            tmp_path, "1.1.0", {"tensorrt_llm/version.py": ('"1.1.0"', "ask_git()")}
        )
        assert checked(tree) == 2
        assert "--engine-version" in capsys.readouterr().err
        assert checked(tree, "--engine-version", "1.1.0") == 0


class TestHostile:
    """The tree is someone else's: it is read as data, within limits."""

    def test_nothing_of_it_is_run(self, tmp_path: Path) -> None:
        trace = tmp_path / "trace"
        run = f"open({str(trace)!r}, 'w').close()\n"
        tree = made_release.write(
            tmp_path / "tree",
            "1.3.0rc3",
            {MODEL: ("\nfrom enum import Enum", f"{run}from enum import Enum")},
        )
        assert checked(tree) == 0
        assert not trace.exists()

    def test_a_link_is_not_followed(self, tmp_path: Path, capsys: Capture) -> None:
        tree = made_release.write(tmp_path / "tree", "1.3.0rc3")
        secret = tmp_path / "secret.py"
        secret.write_text("password = 1\n")
        (tree / MODEL).unlink()
        (tree / MODEL).symlink_to(secret)
        assert checked(tree) == 2
        assert "link" in capsys.readouterr().err

    def test_a_huge_file_is_not_read(self, tmp_path: Path, capsys: Capture) -> None:
        tree = made_release.write(tmp_path, "1.3.0rc3")
        with (tree / MODEL).open("a") as file:
            file.truncate(2**32)  # a hole: it takes no room
        assert checked(tree) == 2
        assert "too large" in capsys.readouterr().err

    def test_a_huge_entry_of_a_wheel_is_not_read(self, tmp_path: Path, capsys: Capture) -> None:
        path = tmp_path / "a.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("tensorrt_llm/version.py", "#" * 2**24)
        assert checked(path) == 2
        assert "too large" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "text",
        ["a = a\nb: b = b\n", "x = " + "(" * 60 + ")" * 60, "y = " + "-" * 3000 + "1\n"],
        ids=["circular", "nested", "deep"],
    )
    def test_circles_and_depths_end(self, tmp_path: Path, text: str) -> None:
        tree = made_release.write(tmp_path, "1.3.0rc3")
        with (tree / MODEL).open("a") as file:
            file.write(f"\n{text}\nclass TorchLlmArgs(TorchLlmArgs):\n    key: TorchLlmArgs = a\n")
        assert checked(tree) in (1, 2)
