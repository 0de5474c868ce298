"""Broken answers: what no working model says, told by the text and its count of tokens alone.

Pure. A build with broken kernels, wrong scales or a damaged cache answers fast, with status 200,
and with one token over and over ("!!!!!!!!" is token 0 of many vocabularies), with bytes that are
no text, or with an end at once. That is looked for, and nothing that a weak model may say: a phrase
told twice, a wrong fact, the wrong language. Fluent nonsense passes here; it is for the texts that
a scenario gives and for its accuracy tasks to find.
"""

import re
import unicodedata
from itertools import groupby

# From how many on a single character or word is no text. Four, as the shortest real ones have
# three ("...", "no no no"); of the end of an answer that began well, more: "aaaah", "very, very".
_ALL_ONE = 4
_LAST_CHARACTERS = 8
_LAST_WORDS = 6
_FEW = 12  # characters or words among which two different ones are still too few
_RULES = frozenset("-=_*#~.·–—─━═│|+0")  # drawn in rows by tables, headings and blanks to fill in
_CUT = 3  # bytes of a character, at most four long, that a limit of tokens can leave behind


def fault(answer: str, prompt: str, *, tokens: int | None = None, most: int | None = None) -> str:
    """What is broken about an answer, in words that follow "the answer"; empty: nothing.

    Args:
        answer: its text.
        prompt: what was asked.
        tokens: its tokens, where the program counts them.
        most: most tokens that were requested; None: the program's own default, which is above one.
    """
    said = answer.strip()
    if not said:
        return "is empty"
    return (
        _of_characters(answer)
        or _of_repetition(said)
        or _of_words(said)
        or _of_echo(said, prompt)
        or ("" if most == 1 else _of_length(said, tokens))
    )


def _of_characters(answer: str) -> str:
    """Bytes that are no text; one character that the limit cut at the very end is none."""
    whole = answer.rstrip("\ufffd")
    if "\ufffd" in whole or len(answer) - len(whole) > _CUT:
        return "has bytes that are no UTF-8 (U+FFFD)"
    for character in whole:
        if unicodedata.category(character) in ("Cc", "Co", "Cs") and not character.isspace():
            return f"has a character of no text, U+{ord(character):04X}"
    return ""


def _of_words(said: str) -> str:
    if any(unicodedata.category(character)[0] in "LN" for character in said):
        return ""
    return f"has no letter and no digit, {_shown(said)}"


def _of_repetition(said: str) -> str:
    """One or two characters or words, and nothing else from the middle on at the latest."""
    characters = [character for character in said if not character.isspace()]
    words = said.casefold().split()
    for parts, many, what in (
        (characters, _LAST_CHARACTERS, "character"),
        (words, _LAST_WORDS, "word"),
    ):
        if len(parts) >= _ALL_ONE and len(set(parts)) == 1:
            return f"repeats one {what}, {_shown(parts[0])}"
        few = set(parts)
        if len(parts) >= _FEW and len(few) == 2 and not all(map(_is_number, few)):
            return f"has two different {what}s, {' and '.join(map(_shown, sorted(few)))}"
        last, count = [(part, len([*run])) for part, run in groupby(parts)][-1]
        is_rule = last in _RULES or _is_number(last)
        if count >= many and 2 * count >= len(parts) and not is_rule:
            return f"ends in {count} times the {what} {_shown(last)}"
    return ""


def _of_echo(said: str, prompt: str) -> str:
    """The prompt and nothing else, once or more often."""
    asked, text = " ".join(prompt.split()), " ".join(said.split())
    whole, _, rest = text.rpartition(asked) if asked else ("", "", text)
    is_echo = asked in text and not whole.replace(asked, "").strip()
    if is_echo and asked.startswith(rest.strip()):
        return "is only the prompt"
    return ""


def _of_length(said: str, tokens: int | None) -> str:
    """A single token, where more were requested.

    Without a count, a single word of ASCII is one; other scripts are written without blanks.
    """
    is_one = re.fullmatch(r"[!-~]+", said) is not None if tokens is None else tokens == 1
    return f"is a single {'word' if tokens is None else 'token'}, {_shown(said)}" if is_one else ""


def _is_number(part: str) -> bool:
    return not any(character.isalpha() for character in part) and any(map(str.isdigit, part))


def _shown(part: str) -> str:
    return repr(part[:20])
