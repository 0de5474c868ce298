"""The YAML file: each setting under the keys of its release, read back as it was meant."""

from dataclasses import replace
from typing import Any

from tables import each
from trtllm_scenarios import scenario

from perfgate.engines.tensorrt_llm import llm_api_yaml
from perfgate.engines.tensorrt_llm.table import SERVE, THROUGHPUT, release
from perfgate.scenarios.scenario import EngineSettings


class TestTheMappingOfTheKvCache:
    """A mapping in the file takes the place of the command line's own before 1.3."""

    def of(
        self, documented: str | None, version: str, program: str = THROUGHPUT, **source: str
    ) -> Any:
        case = scenario(release=documented)
        case = replace(case, source=replace(case.source, **source))
        asked = EngineSettings(kv_cache_dtype="fp8", kv_cache_fraction=0.8)
        return llm_api_yaml.document(case, asked, release(version), program)["kv_cache_config"]

    def test_at_the_documents_own_release_the_file_is_the_documents(self) -> None:
        assert self.of("1.0.0", "1.0.0") == self.of("1.0.0", "1.0.0+local") == {"dtype": "fp8"}

    def test_the_share_of_a_document_that_measured_a_commit_is_kept(self) -> None:
        """Its key of that time, at the top of the file, took nothing away."""
        kept = {"dtype": "fp8", "free_gpu_memory_fraction": 0.8, "enable_block_reuse": False}
        assert self.of("1.0.0", "1.0.0", engine_commit="b626186") == kept

    @each("version", ["1.0.0rc4", "1.1.0", "1.2.0", "1.3.0rc3", "1.3.0"])
    def test_at_any_other_it_says_what_the_command_line_says(self, version: str) -> None:
        kept = {"dtype": "fp8", "free_gpu_memory_fraction": 0.8}
        assert self.of("1.0.0", version) == {**kept, "enable_block_reuse": False}
        assert self.of("1.0.0", version, SERVE) == {**kept, "enable_block_reuse": True}

    def test_a_scenario_of_no_release_keeps_its_share_where_it_would_be_lost(self) -> None:
        assert self.of(None, "1.1.0")["free_gpu_memory_fraction"] == 0.8
        assert self.of(None, "1.3.0") == {"dtype": "fp8"}, "merged there"
