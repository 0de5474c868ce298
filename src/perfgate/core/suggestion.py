"""Suggestion: which known word a person probably meant; every message asks it here."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that differs from `word` in a few letters or in case; None: there is none."""
    lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lower, n=1)
    return lower[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The hint of a message: ``did you mean b200?``; None: no known word is near."""
    found = nearest(word, known)
    return None if found is None else f"did you mean {found}?"
