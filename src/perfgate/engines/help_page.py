"""What a `--help` page says of a program's options: of click, and of argparse.

The page is for people: what it does not say (the kind of an argparse option) is any text.
"""

import re
from collections.abc import Iterator

from perfgate.engines.definitions import Kind, OptionDefinition

_ENTRY = re.compile(r"^ {1,8}(?P<declared>-{1,2}[A-Za-z].*?)(?:\s{2,}(?P<help>.*))?$")
_SPELLING = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_REQUIRED = re.compile(r"\[(?:[^\]]*; ?)?required\]")
_CLICK_CHOICES = re.compile(r"\[([^\]\s]+\|[^\]\s]+)\]")
_CLICK_CHOICE = re.compile(r" \[([^\]\s|.]+)\]$")
_ARGPARSE_CHOICES = re.compile(r"\{([^}]+)\}")
# ``:tag:`prototype` …`` of TensorRT-LLM, ``[DEPRECATED] …`` of vLLM, ``NOTE: --enable-ep-moe is
# deprecated …`` of SGLang: what only speaks of another option's end does not begin so.
_STATUS = re.compile(
    r"(?:note: )*(?::tag:`|\[|--[\w-]+ is )?(deprecated|prototype)\b", re.IGNORECASE
)
_KINDS: dict[str, Kind] = {"INTEGER": "integer", "FLOAT": "number", "BOOLEAN": "boolean"}


def options_in(text: str) -> dict[str, OptionDefinition]:
    """The options that a help text declares, by name; empty: it declares none."""
    found: dict[str, OptionDefinition] = {}
    for declared, help_text in _entries(text):
        option = _option(declared, help_text)
        name = max(option.options, key=len).lstrip("-").replace("-", "_")
        found[name] = option
    return found


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Each declaration with all lines of its help."""
    declared, told = "", ""
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry is not None:
            if declared:
                yield declared, told
            declared, told = entry["declared"], entry["help"] or ""
        elif declared and line.startswith("   "):
            told += " " + line.strip()
        elif declared:
            yield declared, told
            declared, told = "", ""
    if declared:
        yield declared, told


def _option(declared: str, help_text: str) -> OptionDefinition:
    on, _, off = declared.partition(" / ")
    spellings = tuple(dict.fromkeys(_SPELLING.findall(_without_choices(on))))
    value = _SPELLING.sub("", _without_choices(declared)).replace("/", "").strip(" ,")
    choices = _choices(declared)
    is_flag = not value and not choices
    word = value.split()[0] if value else ""
    told = " ".join(help_text.split())
    status = _STATUS.match(told)
    return OptionDefinition(
        options=spellings,
        kind="flag" if is_flag else _KINDS.get(word, "text"),
        off=tuple(_SPELLING.findall(off)) if off else (),
        choices=choices,
        required=_REQUIRED.search(told) is not None,
        many="..." in value,
        status=status[1].lower() if status else "",
    )


def _choices(declared: str) -> tuple[str, ...]:
    click = _CLICK_CHOICES.search(declared)
    if click is not None:
        return tuple(click[1].split("|"))
    only = _CLICK_CHOICE.search(declared)
    if only is not None and only[1] not in _metavars(declared):
        return (only[1],)
    argparse = _ARGPARSE_CHOICES.search(declared)
    return tuple(argparse[1].split(",")) if argparse is not None else ()


def _metavars(declared: str) -> set[str]:
    """What argparse calls the value: in brackets it is one that can be left out, not a choice."""
    return {
        spelling.lstrip("-").replace("-", "_").upper() for spelling in _SPELLING.findall(declared)
    }


def _without_choices(declared: str) -> str:
    return _ARGPARSE_CHOICES.sub("", _CLICK_CHOICES.sub("", declared))
