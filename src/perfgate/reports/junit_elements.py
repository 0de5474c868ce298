"""Which element of JUnit XML a verdict is, and what its attributes say: for every writer of it."""

from perfgate.core.verdict import Verdict

# Verdict → the element; a PASS and an IMPROVEMENT have none.
ELEMENTS = {
    Verdict.REGRESSION: "failure",
    Verdict.ERROR: "error",
    Verdict.INCONCLUSIVE: "skipped",
    Verdict.NO_BASELINE: "skipped",
    Verdict.NOT_COMPARABLE: "skipped",
}
# Element → the attribute of its suite that counts it.
COUNTS = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def kind(verdict: Verdict) -> str:
    """The `type` of the element."""
    return f"perfgate.{verdict.value}"


def message(verdict: Verdict, summary: str) -> str:
    """The `message` of the element, one line."""
    return f"{verdict.value}: {summary}"
