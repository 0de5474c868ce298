"""Control characters: what no text of one line needs, and what makes another text of it.

Ends of lines and escapes make commands of comments and change terminals; bidirectional controls
show a reader another order than a shell reads.
"""

import re

# C0, DEL and C1; bidirectional marks, embeddings and isolates; line and paragraph separators;
# surrogates, which are no characters.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def found_in(text: str) -> str | None:
    """The first control character as an escape, ``\\n``; None: there is none."""
    found = _CONTROL.search(text)
    return found and _escape(found)


def escaped(text: str) -> str:
    """The text on one line, with escapes for its control characters."""
    return _CONTROL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
