"""Which GGUF tokenizers are translated and which are refused; `test_embedded_default` compares."""

from typing import Any

import pytest

from perfgate.engines.gguf_tokenizer import UnfitFile, require_known_kind

KNOWN: dict[str, Any] = {
    "model": "gpt2",
    "pre": "smollm",
    "tokens": ["a"],
    "token_type": [1],
    "merges": [],
    "bos_token_id": 0,
    "eos_token_id": 0,
}


def test_accepts_the_kind_that_was_compared() -> None:
    require_known_kind(KNOWN)


@pytest.mark.parametrize(
    "change", [{"model": "llama"}, {"pre": "llama-bpe"}, {"pre": None}, {"model": None}]
)
def test_refuses_other_kinds(change: dict[str, Any]) -> None:
    with pytest.raises(UnfitFile, match="only gpt2/smollm is supported"):
        require_known_kind({**KNOWN, **change})


def test_refuses_a_file_without_merges() -> None:
    without = {name: value for name, value in KNOWN.items() if name != "merges"}
    with pytest.raises(UnfitFile, match=r"no tokenizer\.ggml entries merges"):
        require_known_kind(without)
