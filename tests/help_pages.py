"""What a printed help page declares, as the tests want it: all spellings in one set."""

from perfgate.engines.help_page import options_in


def options_in_help(text: str) -> frozenset[str]:
    """All spellings of all options that a help text declares (of click or argparse)."""
    return frozenset(
        spelling for option in options_in(text).values() for spelling in option.spellings
    )
