"""Write the tokenizer inside a GGUF file as a Hugging Face folder, for clients that need one.

A program of its own, run by path with the interpreter that has `gguf` and `tokenizers`; it imports
nothing of perfgate. `transformers` can do this only with torch installed, so the file's own
metadata is translated here, for the one kind of tokenizer that was compared with llama.cpp's:
GPT-2's byte-level BPE with SmolLM's splitting of digits (`LLAMA_VOCAB_PRE_TYPE_SMOLLM` in
llama.cpp's `llama-vocab.cpp`).
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONTROL = 3  # LLAMA_TOKEN_TYPE_CONTROL: never made of text, written as one token


class UnfitFile(Exception):
    """The GGUF file cannot be read or has a tokenizer of another kind."""


def metadata(model: Path) -> dict[str, Any]:
    """The file's ``tokenizer.ggml.*`` entries, and its context length as ``context_length``.

    Raises:
        UnfitFile: it is missing, cut, or no GGUF file.
    """
    import gguf

    try:
        fields = gguf.GGUFReader(model).fields
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise UnfitFile(f"{model} is not a complete GGUF file: {error}") from error
    prefix = "tokenizer.ggml."
    found = {
        name.removeprefix(prefix): field.contents()
        for name, field in fields.items()
        if name.startswith(prefix)
    }
    for name, field in fields.items():
        if name.endswith(".context_length"):
            found["context_length"] = field.contents()
    return found


def require_known_kind(found: Mapping[str, Any]) -> None:
    """Refuse what was never compared with llama.cpp's own tokenizer.

    Raises:
        UnfitFile: it is of another kind, or incomplete.
    """
    kind = (found.get("model"), found.get("pre"))
    if kind != ("gpt2", "smollm"):
        raise UnfitFile(f"the tokenizer is {kind[0]}/{kind[1]}; only gpt2/smollm is supported")
    missing = [
        name
        for name in ("tokens", "token_type", "merges", "bos_token_id", "eos_token_id")
        if name not in found
    ]
    if missing:
        raise UnfitFile(f"the file has no tokenizer.ggml entries {', '.join(missing)}")


def write(found: Mapping[str, Any], folder: Path) -> None:
    """Write ``tokenizer.json`` and ``tokenizer_config.json`` into `folder`."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens, types = found["tokens"], found["token_type"]
    merges = [tuple(merge.split(" ")) for merge in found["merges"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind in zip(tokens, types, strict=True)
            if kind == CONTROL
        ]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[found["bos_token_id"]],
        "eos_token": tokens[found["eos_token_id"]],
        "model_max_length": found.get("context_length", 8192),
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")


def convert(model: Path, output: Path) -> None:
    """Write the model's tokenizer into the folder `output`.

    Raises:
        UnfitFile: the model's file does not do.
    """
    found = metadata(model)
    require_known_kind(found)
    output.mkdir(parents=True, exist_ok=True)
    write(found, output)


def main() -> int:
    parser = argparse.ArgumentParser(description="Write a GGUF file's tokenizer as a folder.")
    parser.add_argument("model", type=Path, help="the GGUF file")
    parser.add_argument("output", type=Path, help="the folder to write into")
    arguments = parser.parse_args()
    try:
        convert(arguments.model, arguments.output)
    except UnfitFile as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
