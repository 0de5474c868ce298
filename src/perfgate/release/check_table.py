"""Check table: a release check as rows and lines for people, the worst first. Pure."""

from collections.abc import Sequence

from perfgate.core.verdict import counted
from perfgate.release.check_result import CheckedTest, Finding, ReleaseCheck
from perfgate.release.policy import Effect

COLUMNS = ("required", "test", "run", "found", "counts as", "metrics", "why")
RIGHT = (5,)
_FROM_WORST: tuple[Effect, ...] = ("fail", "warn", "pass")
_FINDINGS_FROM_WORST = (
    Finding.REGRESSION,
    Finding.BELOW_FLOOR,
    Finding.BELOW_DOCUMENTED,
    Finding.WRONG_BUILD,
    Finding.ERROR,
)


def check_rows(found: ReleaseCheck) -> list[tuple[str, ...]]:
    """One row a test, as `COLUMNS`; those that passed, one row for each part of the policy."""
    rows = [_row(one) for one in worst_first(found.tests) if one.effect != "pass"]
    for name in dict.fromkeys(one.requirement for one in found.tests):
        passed = [one for one in found.tests if (one.requirement, one.effect) == (name, "pass")]
        if passed:
            rows.append(_passed(name, passed))
    return rows


def worst_first(tests: Sequence[CheckedTest]) -> list[CheckedTest]:
    """The tests, those that fail the release first, a loss before what is missing."""
    return sorted(tests, key=_badness)


def check_lines(found: ReleaseCheck) -> list[str]:
    """What stands below the table: what was read, what was really checked, and the result."""
    policy = found.policy
    counts: dict[str, int] = {}
    for one in worst_first(found.tests):
        counts[one.finding.value] = counts.get(one.finding.value, 0) + 1
    tests = ", ".join(f"{number} {name}" for name, number in counts.items())
    age = f"runs of at most {policy.max_age_days:g} days"
    rates = found.error_rates
    return [
        f"release: {policy.release} ({_build(found)})",
        f"checked: {found.at:%Y-%m-%d %H:%M} UTC, {age}",
        f"runs: {', '.join(_runs(found))}",
        *(f"note: {line}" for line in found.notes),
        *(f"warning: {line}" for line in found.warnings),
        f"required: {counted(len(found.tests), 'test')} ({tests}); "
        f"{len(found.not_required)} more in the runs are not required",
        f"metrics: {found.metrics_checked} checked from numbers",
        f"error rates: {rates.sentence if rates else 'not known: no metric was checked'}",
        *(f"fails: {line}" for line in found.faults),
        f"required_sha256: {found.required_sha256}"
        + ("" if policy.required_sha256 else " (not in the policy, which so takes any tests)"),
        f"result: {found.result}",
    ]


def _build(found: ReleaseCheck) -> str:
    build = found.policy.build
    told = [build.engine, build.version, build.commit and f"commit {build.commit}", build.image]
    return " ".join(one for one in told if one)


def _runs(found: ReleaseCheck) -> list[str]:
    machines = found.machines or {}
    return [
        f"{one.id} ({machines.get(one.id, '')}, "
        f"{'did not end' if one.status is None else f'exit status {one.status}'})"
        for one in found.runs
    ]


def _row(one: CheckedTest) -> tuple[str, ...]:
    metrics = str(one.metrics) if one.metrics else ""
    return (one.requirement, one.test, one.run, one.finding.value, one.effect, metrics, one.why)


def _passed(name: str, passed: Sequence[CheckedTest]) -> tuple[str, ...]:
    runs = ", ".join(dict.fromkeys(one.run for one in passed))
    waived = sum(one.finding != Finding.PASSED for one in passed)
    why = f"{waived} of them waived" if waived else ""
    tests = counted(len(passed), "test")
    metrics = str(sum(one.metrics for one in passed))
    return (name, tests, runs, Finding.PASSED.value, "pass", metrics, why)


def _badness(one: CheckedTest) -> tuple[int, int]:
    among = _FINDINGS_FROM_WORST
    place = among.index(one.finding) if one.finding in among else len(among)
    return _FROM_WORST.index(one.effect), place
