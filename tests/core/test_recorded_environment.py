from perfgate.core.recorded_environment import recorded


def test_only_listed_variables_are_recorded() -> None:
    environment = {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "SLURM_JOB_ID": "7",
        "GITHUB_RUN_ID": "8",
        "CI_PIPELINE_ID": "9",
        "NCCL_DEBUG": "WARN",
        "PERFGATE_MODELS": "/models",
        "GITHUB_PAT": "a",
        "GITHUB_TOKEN": "a",
        "CI_JOB_JWT": "a",
        "CI_REGISTRY_PASSWORD": "a",
        "CI_REPOSITORY_URL": "https://gitlab-ci-token:a@host/x.git",
        "HF_TOKEN": "a",
        "SLURM_JWT": "a",
        "NVIDIA_API_KEY": "a",
        "VLLM_API_KEY": "a",
        "VLLM_ATTENTION_BACKEND": "FLASHMLA",
        "HOME": "/root",
    }
    assert sorted(recorded(environment)) == [
        "CI_PIPELINE_ID",
        "CUDA_VISIBLE_DEVICES",
        "GITHUB_RUN_ID",
        "NCCL_DEBUG",
        "PERFGATE_MODELS",
        "SLURM_JOB_ID",
        "VLLM_ATTENTION_BACKEND",
    ]


def test_recorded_values_are_masked() -> None:
    assert recorded(
        {
            "HF_ENDPOINT": "https://me:pass@hub/x",
            "PERFGATE_PROGRAM_AIPERF": "env API_KEY=abc aiperf",
            "PERFGATE_STANDIN_TOKEN": "abc",
        }
    ) == {
        "HF_ENDPOINT": "https://***@hub/x",
        "PERFGATE_PROGRAM_AIPERF": "env API_KEY=*** aiperf",
        "PERFGATE_STANDIN_TOKEN": "***",
    }
