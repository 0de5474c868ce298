"""The release tables: which version falls into which range, and what the ranges differ in."""

from pathlib import Path

import msgspec
import pytest
from packaging.version import Version

from perfgate.core.errors import InputError
from perfgate.engines.tensorrt_llm import releases
from perfgate.engines.tensorrt_llm.releases import (
    all_releases,
    read_tables,
    release,
    same_release,
    uncovered,
)
from perfgate.engines.tensorrt_llm.releases.table import (
    BENCH,
    GPQA,
    LATENCY,
    PREPARE,
    PREPARE_NORMAL,
    PREPARE_SCRIPT,
    PREPARE_SCRIPT_NORMAL,
    QUICKSTART,
    SERVE,
    THROUGHPUT,
    YamlKeys,
)


@pytest.mark.parametrize(
    ("version", "since"),
    [
        ("0.19.0", "0.19.0rc0"),
        ("0.20.0rc3", "0.20.0rc0"),
        ("0.21.0", "0.21.0rc0"),
        ("1.0.0rc1", "0.21.0rc0"),
        ("1.0.0rc2", "1.0.0rc2"),
        ("1.0.0rc3", "1.0.0rc2"),
        ("1.0.0rc4", "1.0.0rc4"),
        ("1.0.0", "1.0.0rc4"),
        ("1.0", "1.0.0rc4"),
        ("1.0.3", "1.0.0rc4"),
        ("1.1.0rc2.post1", "1.1.0rc0"),
        ("1.2.0rc3", "1.1.0rc0"),
        ("1.2.0", "1.2.0rc4"),
        ("1.3.0rc5.post1", "1.3.0rc0"),
        ("1.3.0rc10", "1.3.0rc0"),
        ("1.3.0rc11", "1.3.0rc11"),
        ("1.3.0", "1.3.0rc24"),
        ("1.4.0rc1", "1.3.0rc24"),
        ("2.0.0", "1.3.0rc24"),
        ("1.0.0+abc123", "1.0.0rc4"),
        ("v1.0.0", "1.0.0rc4"),
    ],
)
def test_a_version_falls_into_its_range(version: str, since: str) -> None:
    assert release(version).since == since
    assert release(version).version == version


def test_ranges_ascend() -> None:
    begins = [Version(table.since) for table in all_releases()]
    assert begins == sorted(set(begins))


def test_what_is_too_old_is_refused() -> None:
    with pytest.raises(InputError, match=r"(?s)too old.*found: 0\.18\.2.*expected: 0\.19\.0rc0 or"):
        release("0.18.2")


@pytest.mark.parametrize("version", ["", "main", "1.0.x"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(InputError, match=r"(?s)not a version.*--engine-version"):
        release(version)


def test_a_build_of_a_release_is_that_release() -> None:
    assert same_release("1.0", "1.0.0+cu129")
    assert not same_release("1.0.0", "1.0.0rc6")


class TestFiles:
    """What a range's file may say."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        source = Path(releases.__file__).with_name("0.19.0rc0.yaml")
        (tmp_path / source.name).write_text(source.read_text())
        return tmp_path

    def test_a_later_file_is_what_changed(self, folder: Path) -> None:
        (folder / "0.20.0.yaml").write_text(
            "programs: {trtllm-serve: {--host: null, --new: {flag: true}}}\nmtp_zero: false\n"
        )
        before, after = read_tables(folder)
        assert (before.since, after.since) == ("0.19.0rc0", "0.20.0")
        assert set(before.options(SERVE)) ^ set(after.options(SERVE)) == {"--host", "--new"}
        assert after.options(SERVE)["--new"].flag
        assert before.mtp_zero
        assert not after.mtp_zero
        assert after.spelling == before.spelling

    @pytest.mark.parametrize(
        "changes",
        [
            "no_such_field: 1",
            "spelling: {no_such_setting: [a]}",
            "programs: {trtllm-serve: {--host: {no_such_fact: true}}}",
            "spelling: {overlap: null}",
            "defaults: {trtllm-serve: {cuda_graphs: sometimes}}",
        ],
    )
    def test_what_a_table_does_not_have_is_refused(self, folder: Path, changes: str) -> None:
        (folder / "0.20.0.yaml").write_text(changes)
        with pytest.raises(msgspec.ValidationError):
            read_tables(folder)

    def test_only_what_is_there_can_be_taken_away(self, folder: Path) -> None:
        (folder / "0.20.0.yaml").write_text("programs: {trtllm-serve: {--no-such-option: null}}")
        with pytest.raises(KeyError, match="--no-such-option"):
            read_tables(folder)


class TestOptions:
    def test_chunked_context_came_and_got_a_negation(self) -> None:
        assert "--enable_chunked_context" not in release("0.21.0").options(THROUGHPUT)
        assert release("1.0.0").options(THROUGHPUT)["--enable_chunked_context"].negation is None
        option = release("1.1.0").options(THROUGHPUT)["--enable_chunked_context"]
        assert option.negation == "--disable_chunked_context"

    def test_the_yaml_option_got_a_second_name(self) -> None:
        for program in (THROUGHPUT, LATENCY, SERVE):
            assert release("1.1.0").option(program, "--config") is None
            option = release("1.2.0").option(program, "--config")
            assert option is not None
            assert option.name == "--extra_llm_api_options"

    def test_latency_takes_no_yaml_before_1_2(self) -> None:
        assert release("1.0.0").option(LATENCY, "--extra_llm_api_options") is None

    def test_bench_and_serve_spell_the_kv_fraction_differently(self) -> None:
        for table in all_releases():
            assert "--kv_cache_free_gpu_mem_fraction" in table.options(THROUGHPUT)
            assert "--kv_cache_free_gpu_memory_fraction" in table.options(SERVE)

    def test_the_dataset_tool_moved(self) -> None:
        for version, there, gone in (
            ("1.1.0", (PREPARE_SCRIPT, PREPARE_SCRIPT_NORMAL), (PREPARE, PREPARE_NORMAL)),
            ("1.2.0", (PREPARE, PREPARE_NORMAL), (PREPARE_SCRIPT, PREPARE_SCRIPT_NORMAL)),
        ):
            table = release(version)
            assert table.dataset_tool.program in there
            assert all(table.options(program) for program in there)
            assert not any(table.options(program) for program in gone)

    def test_gpqa_left_and_overlap_turned_round(self) -> None:
        assert release("0.19.0").options(GPQA)
        assert not release("0.20.0").options(GPQA)
        assert release("0.19.0").option(QUICKSTART, "--enable_overlap_scheduler")
        assert release("0.20.0").option(QUICKSTART, "--disable_overlap_scheduler")
        assert not release("0.20.0").option(QUICKSTART, "--enable_overlap_scheduler")

    def test_every_release_has_the_programs_that_measure(self) -> None:
        for table in all_releases():
            for program in (BENCH, THROUGHPUT, SERVE, QUICKSTART):
                assert table.options(program), (table.since, program)
                assert program == BENCH or program in table.defaults

    def test_a_name_is_the_key_of_its_option(self) -> None:
        for table in all_releases():
            for program in table.programs:
                for name, option in table.options(program).items():
                    assert name == option.name
                    assert not (option.negation and not option.flag)


class TestDefaultsThatMoved:
    @pytest.mark.parametrize(
        ("field", "program", "values"),
        [
            ("backend", SERVE, ["tensorrt", "tensorrt", "pytorch", "pytorch", "pytorch"]),
            ("overlap_scheduler", SERVE, [False, True, True, True, True]),
            ("cuda_graphs", SERVE, ["off", "off", "on", "on", "on"]),
            ("cuda_graphs", THROUGHPUT, ["on", "padded", "padded", "padded", "padded"]),
            ("chunked_context", THROUGHPUT, [False, False, False, True, True]),
            ("pdl", THROUGHPUT, [False, False, False, False, True]),
            ("sampler", SERVE, ["torch", "torch", "torch", "trtllm", "trtllm"]),
        ],
    )
    def test_from_0_19_to_1_2(self, field: str, program: str, values: list[object]) -> None:
        found = [
            getattr(release(version).defaults[program], field)
            for version in ("0.19.0", "0.20.0", "1.0.0", "1.1.0", "1.2.0")
        ]
        assert found == values


def below(keys: YamlKeys, path: tuple[str, ...]) -> bool:
    """Whether the keys of `path` are all known."""
    for key in path:
        if key not in keys:
            return False
        keys = keys[key] or {}
    return True


def test_every_key_that_is_rendered_is_a_known_one() -> None:
    for table in all_releases():
        spelling, graphs = table.spelling, table.spelling.graphs
        paths = [
            getattr(spelling, name)
            for name in (
                "overlap",
                "kv_cache_dtype",
                "moe_backend",
                "iteration_log",
                "attention_backend",
                "moe_max_num_tokens",
                "moe_load_balancer",
                "torch_compile",
                "stream_interval",
                "attention_dp",
                "chunked_prefill",
                "trust_remote_code",
            )
        ]
        paths += [(*graphs.at, key) for key in (graphs.padding, graphs.batch_sizes)]
        paths += [(*graphs.at, graphs.max_batch_size)]
        paths += [(*graphs.at, graphs.switch)] if graphs.switch else []
        paths += [("speculative_config", spelling.mtp_layers)]
        for path in paths:
            assert path is None or below(table.yaml_keys, path), (table.since, path)


def test_unknown_keys_are_refused_from_1_0_on() -> None:
    assert release("1.0.0rc3").unknown_yaml == "ignored"
    assert release("1.0.0rc4").unknown_yaml == "refused"


@pytest.mark.parametrize("version", ["0.19.0", "1.3.0rc23", "1.3.0rc99", "1.3.7", "1.3.0+abc"])
def test_a_release_within_the_tables_is_covered(version: str) -> None:
    assert uncovered(version) is None


@pytest.mark.parametrize("version", ["1.4.0rc0", "1.4.0.dev2", "2.0", "99"])
def test_a_later_release_is_told_with_the_table_that_is_used(version: str) -> None:
    told = uncovered(version)
    assert told is not None
    assert f"TensorRT-LLM {version}: the newest one is used, of {release(version).since} " in told


@pytest.mark.parametrize("version", ["zzz", "main", "0.18.0", ""])
def test_what_no_command_can_be_made_for_is_refused(version: str) -> None:
    with pytest.raises(InputError):
        uncovered(version)
