"""Release checks for tests: of any size, with every finding, and with hostile texts."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from building import applied
from run_reports import BUILD, judged, report, result

from perfgate.core.measurement import MeasuredControl
from perfgate.core.verdict import Verdict
from perfgate.release.check_result import CheckedTest, Effect, Finding, ReleaseCheck
from perfgate.release.error_rates import error_rates
from perfgate.release.pack_archive import PackedFile, Role
from perfgate.release.policy import Floor, Policy, ReleasedBuild, Required, Signer, Subject

AT = datetime(2026, 11, 23, 18, 0, tzinfo=UTC)
KEY = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="  # pragma: allowlist secret
WAIVER = (
    "waived by Ada up to a loss of 6.0 %, until 2026-12-01: the new sampler, fixed in 1.3.1 "
    "(https://example.org/issues/7)"
)
_WHY = {
    Finding.WAIVED: "a waiver lets a regression through",
    Finding.REGRESSION: "output_throughput -5.0 %",
    Finding.BELOW_FLOOR: "output_throughput 990 tokens/s, at least 1000 asked",
    Finding.BELOW_DOCUMENTED: "output_throughput 12 % below what guide.md says",
    Finding.INCONCLUSIVE: "the allowed fresh starts decided neither",
    Finding.NO_BASELINE: "measured, but there is nothing to compare with",
    Finding.NOT_COMPARABLE: "the baseline is of another client",
    Finding.ERROR: "the server ran out of GPU memory",
    Finding.NOT_RUN: "needs 8 GPUs of type B200, there is none",
    Finding.MISSING: "in none of the runs",
    Finding.STALE: "9 days old, 7 allowed",
    Finding.SYNTHETIC: "a mock program made its numbers",
    Finding.INJECTED: "run with --inject",
    Finding.WRONG_HARDWARE: "measured on 8xH200",
    Finding.WRONG_BUILD: "measured tensorrt-llm 1.2.0",
    Finding.FEW_STARTS: "1 fresh start, 3 asked",
    Finding.NOTHING_CHECKED: "no metric of it has a verdict from numbers",
}
_VERDICTS = {
    Finding.PASSED: Verdict.PASS,
    Finding.WAIVED: Verdict.REGRESSION,
    Finding.REGRESSION: Verdict.REGRESSION,
    Finding.INCONCLUSIVE: Verdict.INCONCLUSIVE,
    Finding.NO_BASELINE: Verdict.NO_BASELINE,
    Finding.NOT_COMPARABLE: Verdict.NOT_COMPARABLE,
    Finding.ERROR: Verdict.ERROR,
}
_WITHOUT_RESULT = (Finding.MISSING, Finding.WRONG_HARDWARE)
_JUDGED = (
    Finding.PASSED,
    Finding.WAIVED,
    Finding.REGRESSION,
    Finding.BELOW_FLOOR,
    Finding.BELOW_DOCUMENTED,
    Finding.INCONCLUSIVE,
)


def checked(
    number: int,
    finding: Finding = Finding.PASSED,
    *,
    each: int = 5,
    hardware: str = "8xB200",
    control: bool = False,
    **changes: Any,
) -> CheckedTest:
    """One required test; `each` of them are of one scenario.

    Args:
        number: of the test, from 0.
        finding: what became of it; its effect is the usual one, unless `changes` has another.
        each: tests of a scenario.
        hardware: label.
        control: whether a control was started beside it.
        changes: other fields of the checked test.
    """
    scenario, probe = f"b200-scenario-{number // each:03d}", f"c{2 ** (number % each)}"
    name = f"{scenario}-{probe}"
    verdict = None if finding == Finding.NOT_RUN else _VERDICTS.get(finding, Verdict.PASS)
    found = result(number, verdict, name=name, scenario=scenario, probe=probe, starts=2)
    found = replace(found, test=f"perf_tests/test_serving.py::test_serving[{name}]")
    waivers: tuple[str, ...] = ()
    if finding == Finding.WAIVED:
        waivers = (WAIVER,)
        first = replace(found.judgements[0], waiver=applied(WAIVER))
        found = replace(found, verdict=Verdict.PASS, judgements=(first, *found.judgements[1:]))
    if finding == Finding.SYNTHETIC:
        found = replace(found, synthetic=True)
    if control:
        used = replace(found.judgements[0], controls_used=2)
        found = replace(
            found,
            judgements=(used, *found.judgements[1:]),
            controls=(MeasuredControl("baseline", BUILD, 2),),
        )
    effect: Effect = {Finding.PASSED: "pass", Finding.WAIVED: "warn"}.get(finding, "fail")  # type: ignore[assignment]
    has_result = finding not in _WITHOUT_RESULT
    made = CheckedTest(
        requirement="serving",
        test=name,
        scenario=scenario,
        hardware=hardware,
        finding=finding,
        effect=effect,
        why=_WHY.get(finding, ""),
        run=found.run if has_result else "",
        result=found if has_result else None,
        metrics=len(found.judgements) if finding in _JUDGED else 0,
        waivers=waivers,
    )
    return replace(made, **changes)


def policy(**changes: Any) -> Policy:
    """A policy of two requirements."""
    made = Policy(
        release="tensorrt-llm 1.3.0 for B200",
        build=ReleasedBuild(BUILD.name, BUILD.version, BUILD.commit, "sha256:" + "5f" * 32),
        required=(
            Required("serving", select="b200 and serving", hardware="8xB200", starts=2),
            Required(
                "floor",
                tests=("b200-scenario-000",),
                documented=True,
                floors=(Floor("b200-scenario-000-c1", "output_throughput", 900.0),),
            ),
        ),
        subjects=(Subject("example/engine:1.3.0", {"sha256": "5f" * 32}),),
        signers=(Signer("Ada", KEY),),
        sha256="ab" * 32,
    )
    return replace(made, **changes)


def check(*tests: CheckedTest, **changes: Any) -> ReleaseCheck:
    """A check of these tests; its error rates follow from them, unless given."""
    made = ReleaseCheck(
        policy=policy(),
        at=AT,
        runs=report(*(one.result for one in tests if one.result)).runs,
        tests=tests,
        not_required=("b200-extra-c1", "b200-extra-c2"),
        machines={"20261123-1": "node7, 8 × NVIDIA B200, driver 570.1"},
    )
    return replace(made, **{"error_rates": error_rates(made.tests), **changes})


def usual(scenarios: int = 12, each: int = 5) -> ReleaseCheck:
    """A release as one hopes for it: all passed, one waived, a control here and there."""
    tests = [checked(place, each=each, control=place % 9 == 4) for place in range(scenarios * each)]
    tests[7] = checked(7, Finding.WAIVED, each=each)
    return check(*tests)


def with_long_names() -> ReleaseCheck:
    """The usual release, with names as long as documented scenarios have, on two hardwares."""
    made = usual()
    metric = "output_throughput_per_user"
    tests = []
    for one in made.tests:
        assert one.result is not None
        scenario = one.scenario.replace("scenario", "r1-0528-fp4-fp8kv-max-throughput")
        hardware = "8xB200" if one.scenario < "b200-scenario-006" else "16xH200"
        named = [replace(one.result.judgements[0], metric=metric), *one.result.judgements[1:]]
        found = replace(one.result, scenario=scenario, judgements=tuple(named))
        test = one.test.replace(one.scenario, scenario)
        named_test = replace(one, test=test, scenario=scenario, hardware=hardware, result=found)
        tests.append(named_test)
    return check(*tests)


def with_every_finding() -> ReleaseCheck:
    """One scenario of each finding."""
    return check(*(checked(5 * place, one) for place, one in enumerate(Finding)))


def hostile(texts: Sequence[str]) -> ReleaseCheck:
    """A check in which every text that can hold one is hostile."""
    tests = []
    for place, text in enumerate(texts):
        finding = list(Finding)[place % len(Finding)]
        one = checked(5 * place, finding)
        names = {name: f"{getattr(one, name)}{text}" for name in ("test", "scenario", "hardware")}
        found = one.result
        if found is not None:
            first = tuple(
                replace(judgement, waiver=applied(text), notes=(text,), reason=text)
                for judgement in found.judgements[:1]
            )
            strange = tuple(replace(judgement, metric=text) for judgement in first)
            found = replace(found, name=text, judgements=(*strange, *found.judgements[1:]))
        tests.append(
            replace(
                one, **names, requirement=text, why=text, waivers=(text,), run=text, result=found
            )
        )
    text = "".join(texts)
    asked = policy(
        release=text,
        build=ReleasedBuild(text, text, text, text),
        required=(Required(text, select=text, tests=(text,), hardware=text),),
        subjects=(Subject(text, {text: text}),),
        signers=(Signer(text, text),),
        sha256=text,
    )
    made = check(*tests, policy=asked, not_required=tuple(texts), machines={text: text})
    said = tuple(texts)
    made = replace(made, faults=said, warnings=said, notes=said)
    run = replace(made.runs[0], id=text, started=text, versions={"perfgate": text})
    return replace(made, runs=(run,))


def packed() -> tuple[PackedFile, ...]:
    """A few files of a pack."""
    held: list[tuple[str, Role]] = [
        ("policy/release.yaml", "policy"),
        ("scenarios/a.yaml", "scenarios"),
        ("scenarios/b.yaml", "scenarios"),
        ("runs/20261123-1/baselines/a.json", "baseline"),
        ("runs/20261123-1/records.jsonl", "records"),
        ("runs/20261123-1/raw/a.json", "raw"),
    ]
    return tuple(
        PackedFile(path, f"{place:02x}" * 32, 100 + place, role)
        for place, (path, role) in enumerate(held)
    )


__all__ = ["AT", "KEY", "WAIVER", "check", "checked", "hostile", "judged", "packed", "policy"]
