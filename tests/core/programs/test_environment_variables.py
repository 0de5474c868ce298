"""Environment variables: the table, and what the code really reads, are the same."""

import re
from pathlib import Path

from tables import each

from perfgate.core.programs import environment_variables, programs
from perfgate.core.programs.environment_variables import known_variables, unknown_variables
from perfgate.core.programs.programs import PROGRAM_PREFIX, Program
from perfgate.engines.llama_cpp import MODELS

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "src" / "perfgate"
NAMES = {one.name for one in known_variables() if "<" not in one.name}  # the rest are families
# A name in quotes is read, set or told to a person; one in running text is only spoken of.
QUOTED = re.compile(r"""["'](PERFGATE_[A-Z0-9_]*[A-Z0-9])["'=]""")


def test_every_variable_of_the_code_is_in_the_table() -> None:
    read = {name for file in SOURCES.rglob("*.py") for name in QUOTED.findall(file.read_text())}
    assert len(read) > 10
    assert sorted(read - NAMES) == []


def test_every_variable_of_the_table_is_read_somewhere_those_of_models_included() -> None:
    texts = [file.read_text() for file in SOURCES.rglob("*.py")]
    texts += [file.read_text() for file in (ROOT / "tests").rglob("*.py") if file != Path(__file__)]
    models = {model.variable for model in MODELS.values()}
    unread = {name for name in NAMES - models if not any(f'"{name}' in text for text in texts)}
    assert unread == set()
    assert models <= NAMES


def test_the_page_names_every_program() -> None:
    known = {one.variable for one in vars(programs).values() if isinstance(one, Program)}
    text = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    told = text[text.index("`<NAME>` of a program") : text.index("TensorRT-LLM's Python")]
    assert {PROGRAM_PREFIX + name for name in re.findall(r"`([A-Z_]+)`", told)} == known


@each(
    ("name", "meant"),
    [
        ("PERFGATE_MODLES", "; did you mean PERFGATE_MODELS?"),
        ("PERFGATE_MODEL", "; did you mean PERFGATE_MODELS?"),
        ("PERFGATE_PROGRAM_TRTLLM_BNCH", "; did you mean PERFGATE_PROGRAM_TRTLLM_BENCH?"),
        ("PERFGATE_PROGRAM_TRTLLM-SERVE", "; did you mean PERFGATE_PROGRAM_TRTLLM_SERVE?"),
        ("PERFGATE_QQQQ", ""),
        ("PERFGATE_", ""),
    ],
)
def test_an_unknown_name_is_told_with_what_may_be_meant(name: str, meant: str) -> None:
    assert unknown_variables([name]) == (f"{name}: perfgate has no such variable{meant}",)


def test_all_known_names_and_those_of_others_are_no_fault() -> None:
    others = ["PERFGATE_PROGRAM_AIPERF", "PERFGATE_STANDIN_FAULT", "PERFGATES", "HOME"]
    assert unknown_variables([*NAMES, *others]) == ()
    variable = "PERFGATE_PROGRAM_ENGINE_OF_MINE"
    assert unknown_variables([variable])
    assert Program("engine-of-mine", "mine", "me").variable == variable
    assert unknown_variables([variable]) == ()


def test_those_that_are_set_without_their_secrets() -> None:
    given = {"PERFGATE_API_KEY": "abc", "PERFGATE_SITE": "here.yaml", "HOME": "/root"}
    shown = {"PERFGATE_API_KEY": "***", "PERFGATE_SITE": "here.yaml"}
    assert environment_variables.variables_set(given) == shown


def test_only_listed_variables_are_recorded_with_their_secrets_masked() -> None:
    kept = dict.fromkeys(KEPT.split(), "7")
    given = {
        "HF_ENDPOINT": "https://me:pass@hub/x",
        "PERFGATE_PROGRAM_AIPERF": "env API_KEY=abc aiperf",
        "PERFGATE_STANDIN_TOKEN": "abc",
    }
    left_out = dict.fromkeys(LEFT_OUT.split(), "a")
    assert environment_variables.recorded({**kept, **given, **left_out}) == {
        **kept,
        "HF_ENDPOINT": "https://***@hub/x",
        "PERFGATE_PROGRAM_AIPERF": "env API_KEY=*** aiperf",
        "PERFGATE_STANDIN_TOKEN": "***",
    }


OF_CI = "GITHUB_PAT GITHUB_TOKEN CI_JOB_JWT CI_REGISTRY_PASSWORD CI_REPOSITORY_URL"
LEFT_OUT = f"{OF_CI} HF_TOKEN SLURM_JWT NVIDIA_API_KEY VLLM_API_KEY HOME"
OF_JOBS = "CUDA_VISIBLE_DEVICES SLURM_JOB_ID GITHUB_RUN_ID CI_PIPELINE_ID"
KEPT = f"{OF_JOBS} NCCL_DEBUG PERFGATE_MODELS VLLM_ATTENTION_BACKEND"
