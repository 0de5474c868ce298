"""Policy: what must have been measured, how, and judged as what, before a build is released."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SCHEMA_VERSION = 1

Effect = Literal["pass", "warn", "fail"]
"""What something counts as in the result of a release."""

STRICT_EFFECTS: Mapping[str, Effect] = {
    "INCONCLUSIVE": "fail",
    "NO_BASELINE": "fail",
    "NOT_COMPARABLE": "fail",
    "WAIVED": "fail",
}
"""What each counts as where a policy does not say."""


@dataclass(frozen=True)
class ReleasedBuild:
    """The one build that is released; what is None is not asked for.

    Attributes:
        engine: the engine's name.
        version: its release.
        commit: its commit, or the first 12 or more digits of it.
        image: digest of its container image, ``sha256:…``.
    """

    engine: str
    version: str | None = None
    commit: str | None = None
    image: str | None = None


@dataclass(frozen=True)
class Floor:
    """A number that must be reached, whatever the baseline was.

    Attributes:
        test: id of a probe, as ``b200-…-c1``.
        metric: canonical name.
        limit: in the metric's unit: the least, or of a metric that should be small the most.
    """

    test: str
    metric: str
    limit: float


@dataclass(frozen=True)
class Required:
    """Tests that need a verdict.

    Attributes:
        name: of this group of tests, unique in the policy.
        select: an expression of markers, as pytest's ``-m`` takes it; empty: none.
        tests: ids of scenarios, probes, curves and claims; each scenario stands for all its tests.
        hardware: label that each must have been measured on, as ``8xB200``; empty: the scenario's.
        documented: whether each must also reach the value that its document names.
        floors: numbers that must be reached.
        starts: fresh starts of the build under test, at least.
        max_age_days: the oldest that a run may be; None: as the policy has it.
    """

    name: str
    select: str = ""
    tests: tuple[str, ...] = ()
    hardware: str = ""
    documented: bool = False
    floors: tuple[Floor, ...] = ()
    starts: int = 1
    max_age_days: float | None = None


@dataclass(frozen=True)
class Signer:
    """Who may sign.

    Attributes:
        name: for people.
        key: public key, Ed25519, the base64 of its 32 bytes.
    """

    name: str
    key: str


@dataclass(frozen=True)
class Subject:
    """An artifact that the attestations speak of.

    Attributes:
        name: of the artifact, as the image's reference.
        digest: algorithm → hexadecimal digits, as ``{"sha256": "…"}`` or ``{"gitCommit": "…"}``.
    """

    name: str
    digest: Mapping[str, str]


@dataclass(frozen=True)
class SetAside:
    """A run's REGRESSION of a test that a person found to be none of the build's.

    Attributes:
        run: id of the run.
        test: id of the probe, curve or claim.
        reason: what it was, and how that is known.
        by: who answers for it.
        link: where it is followed up.
    """

    run: str
    test: str
    reason: str
    by: str
    link: str


@dataclass(frozen=True)
class Policy:
    """What a release needs (docs/reference/release_policy.schema.json).

    Attributes:
        release: the name of what is released.
        build: the build that every run must have measured.
        required: what needs a verdict; at least one.
        subjects: what the attestations speak of; the build's commit and image are among them.
        effects: what INCONCLUSIVE, NO_BASELINE, NOT_COMPARABLE and WAIVED count as; what is not
            named, as in `STRICT_EFFECTS`.
        max_age_days: the oldest that a run may be.
        false_alarms: the allowed probability that a release without any loss is refused by a false
            REGRESSION.
        signers: who may sign; empty: whoever holds the key that `verify` is given.
        sha256: of the file's bytes.
        set_aside: regressions that do not count, each with a reason; what they are of counts as
            "warn" at best.
        required_sha256: what `requirements.required_sha256` must give; empty: it is not looked at.
    """

    release: str
    build: ReleasedBuild
    required: tuple[Required, ...]
    subjects: tuple[Subject, ...] = ()
    effects: Mapping[str, Effect] = field(default_factory=dict)
    max_age_days: float = 7.0
    false_alarms: float = 0.01
    signers: tuple[Signer, ...] = ()
    sha256: str = ""
    set_aside: tuple[SetAside, ...] = ()
    required_sha256: str = ""

    def effect_of(self, name: str) -> Effect:
        """What INCONCLUSIVE, NO_BASELINE, NOT_COMPARABLE or WAIVED counts as."""
        return self.effects.get(name, STRICT_EFFECTS[name])
