import pytest

from perfgate.core.secrets import is_secret, mask_arguments, mask_environment


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "GITHUB_TOKEN",
        "--token",
        "--api-key",
        "OPENAI_API_KEY",
        "apikey",
        "PGPASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "Authorization",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GITHUB_PAT",
        "AZURE_DEVOPS_EXT_PAT",
        "INPUT_TOKEN",
        "CI_JOB_JWT",
        "CI_JOB_JWT_V2",
        "SESSION_COOKIE",
        "Set-Cookie",
        "session_key",
        "--private_key",
        "privateKey",
        "SSH_PRIVATE_KEY",
        "GPG_PASSPHRASE",
        "SIGNING_KEY",
        "clientSecret",
        "x-api-key",
        "Proxy-Authorization",
        "AWS_ACCESS_KEY_ID",
        "WANDB_KEY",
        "MYSQL_PWD",
        "DB_PASS",
        "SSHPASS",
        "NPM_CONFIG__AUTH",
        "REGISTRY_AUTH",
        "SLACK_WEBHOOK_URL",
        "hfToken",
        "API_TOKENS",
    ],
)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "max_num_tokens",
        "--max-num-tokens",
        "--tokenizer",
        "TOKENIZERS_PARALLELISM",
        "tokenized_requests",
        "--key",
        "PERFGATE_PROGRAM_LM_EVAL",
        "HF_HOME",
        "PATH",
        "PWD",
        "OLDPWD",
        "HF_TOKEN_PATH",
        "SSH_AUTH_SOCK",
        "GIT_ASKPASS",
        "GIT_AUTHOR_NAME",
        "time_per_output_token",
        "first_token_ms",
        "eos_token_id",
        "kv_cache_key",
        "--sort-key",
        "public_key",
        "second_pass",
        "pass@1",
        "CUDA_VISIBLE_DEVICES",
        "NCCL_IB_PKEY",
        "patience",
    ],
)
def test_what_only_sounds_like_one_is_none(name: str) -> None:
    assert not is_secret(name)


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
