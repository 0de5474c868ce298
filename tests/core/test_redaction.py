import pytest

from perfgate.core.redaction import mask_arguments, mask_environment


def test_environment_keeps_its_names_and_masks_values_of_secrets() -> None:
    assert mask_environment(
        {
            "HF_TOKEN": "hf_x",
            "PERFGATE_PROGRAM_AIPERF": "/opt/aiperf/bin/aiperf",
            "PERFGATE_PROGRAM_LM_EVAL": "docker run -e HF_TOKEN=hf_x image lm_eval",
        }
    ) == {
        "HF_TOKEN": "***",
        "PERFGATE_PROGRAM_AIPERF": "/opt/aiperf/bin/aiperf",
        "PERFGATE_PROGRAM_LM_EVAL": "docker run -e HF_TOKEN=*** image lm_eval",
    }


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (["--api-key", "k1", "rest"], ["--api-key", "***", "rest"]),
        (["--api-key=k1=", "rest"], ["--api-key=***", "rest"]),
        (["--password=two words"], ["--password=***"]),
        (["--use-token", "--verbose"], ["--use-token", "--verbose"]),
        (["--token", "--api-key", "k1"], ["--token", "--api-key", "***"]),
        (["HF_TOKEN=k1"], ["HF_TOKEN=***"]),
        (["--inject", "environment.HF_TOKEN=k1"], ["--inject", "environment.HF_TOKEN=***"]),
        (["--header", "Authorization: Bearer k1"], ["--header", "Authorization: ***"]),
        (["--extra", '{"api_key": "k1", "n": 2}'], ["--extra", '{"api_key": "***", "n": 2}']),
        (
            ["--model_args", "model=m,api_key=k1,tokenizer=None"],
            ["--model_args", "model=m,api_key=***,tokenizer=None"],
        ),
        (["--model_args=model=m,api_key=k1"], ["--model_args=model=m,api_key=***"]),
    ],
)
def test_command_lines_lose_their_secrets(given: list[str], written: list[str]) -> None:
    assert mask_arguments(given) == written


@pytest.mark.parametrize(
    "words",
    [
        ["--max-num-tokens", "8192", "--max-num-tokens=8192"],
        ["--tokenizer", "/models/tokenizer", "--tokenizer=/models/x"],
        ["-k", "token", "tests/test_secrets.py::test_it"],
        ["token", "next"],
    ],
)
def test_other_words_stay_as_they_are(words: list[str]) -> None:
    assert mask_arguments(words) == words
