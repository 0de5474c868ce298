"""What a vLLM server says of its configuration, as one flat mapping. Pure.

Either of two sources tells it: ``GET /server_info`` in the server's development mode, as JSON or as
text, and the line of its log with which an engine core begins (``VllmConfig.__str__``). Names are
those of the line, and of the same keys in JSON; a name that is missing was not told.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perfgate.core import json_text
from perfgate.core.measurement import Json
from perfgate.engines.vllm.table import FACTS

_LINE = re.compile(r"Initializing an? (?:V[01] )?LLM engine \(v(?P<version>[^)]+)\) with config: ")
_CHUNKED = re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)")
_ASYNC = re.compile(r"Asynchronous scheduling is (enabled|disabled)")
# One line an engine core; up to 0.11 one a worker, all of the same size.
_KV_CACHE = re.compile(r"KV cache size: ([\d,]+) tokens")
_NAME = re.compile(r"\w+")
_ENUM = re.compile(r"<\w+\.(\w+): [^>]*>")
_CLOSING = {"(": ")", "[": "]", "{": "}"}

_WHOLE = ("compilation_config", "speculative_config")
_OF_LINE = (*(name for keys in FACTS.sections.values() for name in keys.values()), *_WHOLE)
_HOLDERS = ("kernel_config", "observability_config")  # sections that the line has as texts


def of_answer(told: Mapping[str, Json]) -> dict[str, Json]:
    """What an answer of ``/server_info`` tells; empty: nothing that is known here."""
    config = told.get("vllm_config")
    if isinstance(config, str):
        return of_text(config)
    if not isinstance(config, dict):
        return {}
    found: dict[str, Json] = {}
    for section, keys in FACTS.sections.items():
        within = config.get(section)
        if isinstance(within, dict):
            found |= {name: within[key] for key, name in keys.items() if key in within}
    return found | {name: config[name] for name in _WHOLE if name in config}


def of_log(lines: Iterable[str]) -> dict[str, Json]:
    """What the log tells; empty: it has no line of an engine's configuration."""
    found: dict[str, Json] = {}
    beside: dict[str, Json] = {}
    for line in lines:
        if begun := _LINE.search(line):
            found = {"version": begun["version"], **of_text(line[begun.end() :])}
        elif chunked := _CHUNKED.search(line):
            beside["max_num_batched_tokens"] = int(chunked[1])
        elif scheduled := _ASYNC.search(line):
            beside["async_scheduling"] = scheduled[1] == "enabled"
        elif cache := _KV_CACHE.search(line):
            beside["kv_cache_size_tokens"] = int(cache[1].replace(",", ""))
    return {**found, **beside} if found else {}


def of_text(text: str) -> dict[str, Json]:
    """What the text of a configuration tells."""
    parts = dict(_parts(text))
    if "chunked_prefill_enabled" in parts:  # its name up to 0.11
        parts["enable_chunked_prefill"] = parts["chunked_prefill_enabled"]
    found = {name: _value(parts[name]) for name in _OF_LINE if name in parts}
    for holder in _HOLDERS:
        for name in FACTS.sections[holder].values():
            inside = re.search(rf"\b{name}=('[^']*'|[\w.]+)", parts.get(holder, ""))
            if inside is not None:
                found[name] = _value(inside[1])
    return found


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Name and value of each ``name=value``, divided where no bracket or quote is open."""
    begun, expected, quote = 0, [], ""
    for at, letter in enumerate(f"{text}, "):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in _CLOSING:
            expected.append(_CLOSING[letter])
        elif expected and letter == expected[-1]:
            expected.pop()
        elif letter == "," and not expected:
            name, equals, value = text[begun:at].strip().partition("=")
            if equals and _NAME.fullmatch(name):
                yield name, value
            begun = at + 1


def _value(text: str) -> Json:
    """A value of the text as plain JSON; what is none stays text."""
    if text.startswith("{"):
        try:
            return dict(json_text.parse_object(text.encode()))
        except ValueError:
            pass
    try:
        return _plain(ast.literal_eval(_ENUM.sub(r"'\1'", text)))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _plain(value: Any) -> Json:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(one) for one in value]
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
