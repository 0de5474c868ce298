"""Read release.yaml: what a release needs; every error with file, line and field."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError
from perfgate.core.input_files import read_input
from perfgate.core.plain import from_plain
from perfgate.release.policy import STRICT_EFFECTS, Policy, Subject
from perfgate.release.policy_rules import broken_policy_rules
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.release.requirements import SuiteTests
from perfgate.release.suite_rules import broken_suite_rules
from perfgate.scenarios.schema import read_schema
from perfgate.scenarios.yaml_document import Document, read_document
from perfgate.scenarios.yaml_limits import LARGEST_FILE

SCHEMA = Path(__file__).with_name("policy.schema.json")
_GIT_DIGITS = 40  # of a whole SHA-1


class PolicyRefused(ReleaseRefused):
    """A policy cannot be used.

    Attributes:
        errors: all that is wrong with it, in the order of its lines; it is told as the first.
    """

    def __init__(self, errors: Sequence[InputError]) -> None:
        self.errors = tuple(errors)
        first = errors[0]
        super().__init__(
            ReleaseStatus.POLICY,
            first.problem,
            file=first.file,
            line=first.line,
            field=first.field,
            found=first.found,
            expected=first.expected,
            hint=first.hint,
        )

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


def load_policy(path: Path, suite: SuiteTests | None = None) -> Policy:
    """The policy of a file.

    Args:
        path: the file.
        suite: what can be measured, which the policy is held against too; None: it is not.

    Raises:
        InputError: there is no such file.
        PolicyRefused: all that is wrong with it.
    """
    if not path.exists():
        raise InputError(
            "no such file",
            file=path,
            expected="a release policy",
            hint="begin with release.example.yaml (docs/how-to/gate_release.md)",
        )
    document, errors = read_document(
        path,
        expected="schema_version, release, build and required",
        hint="begin with release.example.yaml (docs/how-to/gate_release.md)",
    )
    if document is None:
        raise PolicyRefused(errors)
    errors += _problems(document, errors)
    if errors:
        raise PolicyRefused(sorted(errors, key=_line))
    policy = policy_of(document.value, hashlib.sha256(read_input(path, LARGEST_FILE)).hexdigest())
    if suite is not None:
        found = [document.error(problem) for problem in broken_suite_rules(policy, suite)]
        if found:
            raise PolicyRefused(sorted(found, key=_line))
    return policy


def policy_of(plain: Any, sha256: str) -> Policy:
    """The policy of a file's value, with what follows from it.

    Args:
        plain: what the schema takes.
        sha256: of the file's bytes.
    """
    given = {name: one for name, one in plain.items() if name != "schema_version"}
    policy = from_plain(Policy, {**given, "sha256": sha256})
    return replace(
        policy,
        effects={**STRICT_EFFECTS, **policy.effects},
        subjects=(*policy.subjects, *_own_subjects(policy)),
    )


def _own_subjects(policy: Policy) -> list[Subject]:
    """The build's commit and image, where no subject has them."""
    there = {digits for one in policy.subjects for digits in one.digest.values()}
    build, found = policy.build, []
    if build.commit and len(build.commit) == _GIT_DIGITS and build.commit not in there:
        found.append(Subject(build.engine, {"gitCommit": build.commit}))
    if build.image and (digits := build.image.removeprefix("sha256:")) not in there:
        found.append(Subject(f"{build.engine} image", {"sha256": digits}))
    return found


def _problems(document: Document, known: Sequence[InputError]) -> list[InputError]:
    """What is wrong with the file's value, but in lines of which something worse is known."""
    schema = read_schema(SCHEMA, described=True, one_line=True)
    problems = schema.problems(document.value)
    if not problems and not known:
        problems = list(broken_policy_rules(document.value))  # type: ignore[arg-type]
    lines = {error.line for error in known}
    found = [document.error(problem) for problem in problems]
    return [error for error in found if error.line not in lines]


def _line(error: InputError) -> int:
    return error.line or 0
