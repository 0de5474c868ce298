from tables import each

from perfgate.core.redaction import is_secret

SECRETS = """
    HF_TOKEN GITHUB_TOKEN --token --api-key OPENAI_API_KEY apikey PGPASSWORD
    AWS_SECRET_ACCESS_KEY Authorization GOOGLE_APPLICATION_CREDENTIALS GITHUB_PAT
    AZURE_DEVOPS_EXT_PAT INPUT_TOKEN CI_JOB_JWT CI_JOB_JWT_V2 SESSION_COOKIE Set-Cookie
    session_key --private_key privateKey SSH_PRIVATE_KEY GPG_PASSPHRASE SIGNING_KEY clientSecret
    x-api-key Proxy-Authorization AWS_ACCESS_KEY_ID WANDB_KEY MYSQL_PWD DB_PASS SSHPASS
    DB_PW DBPW MYSQLPW PW
    NPM_CONFIG__AUTH REGISTRY_AUTH SLACK_WEBHOOK_URL hfToken API_TOKENS
"""
OTHERS = """
    max_num_tokens --max-num-tokens --tokenizer TOKENIZERS_PARALLELISM tokenized_requests --key
    PERFGATE_PROGRAM_LM_EVAL HF_HOME PATH PWD OLDPWD HF_TOKEN_PATH SSH_AUTH_SOCK GIT_ASKPASS
    GIT_AUTHOR_NAME time_per_output_token first_token_ms eos_token_id kv_cache_key --sort-key
    public_key second_pass pass@1 CUDA_VISIBLE_DEVICES NCCL_IB_PKEY patience
"""


@each("name", SECRETS.split())
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret(name)


@each("name", OTHERS.split())
def test_what_only_sounds_like_one_is_none(name: str) -> None:
    assert not is_secret(name)
