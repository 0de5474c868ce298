"""Prospect: what one gating metric of one probe could show. A plain value."""

from dataclasses import dataclass
from typing import Literal

from perfgate.core.errors import InputError
from perfgate.judging.assembly.bands import BandSource
from perfgate.judging.forecast.power import Control, Odds
from perfgate.judging.forecast.start_effort import AnyTest, SpeedTest
from perfgate.judging.rules.noise import Noise
from perfgate.scenarios.probe import Probe

Kind = Literal["baseline", "itself", "documented", "nothing"]
NoiseFrom = Literal["history", "pooled", "prior", "measured", "answers", "document", "unknown"]

# True losses, in bands, of which the odds are told.
LOSSES = (0.0, 0.5, 1.0, 1.5)


@dataclass(frozen=True)
class Prospect:
    """What one gating metric of one probe could show.

    Attributes:
        probe: what is measured.
        metric: canonical name.
        against: what it would be compared with.
        n_base: fresh starts of that.
        sessions: sessions that they come from.
        noise: of one fresh start, on the log scale; None: not known, or an accuracy.
        noise_from: where it comes from; "measured": what this machine showed, with a weak prior.
        band: the loss that counts, as a fraction (accuracy: absolute); None: none is declared.
        band_source: where the declared band comes from.
        smallest: the loss that is found in 19 of 20 runs, as a fraction (accuracy: absolute);
            None: none is, up to four bands, or it is not known.
        odds: how often each verdict, at each of `LOSSES`; empty: not simulated.
        test: what the simulation of the effort needs; None: one start settles it.
        problem: why the gate cannot work so.
        warnings: why it works worse than it could.
        notes: what else a person should know.
    """

    probe: Probe
    metric: str
    against: Kind
    n_base: int = 0
    sessions: int = 0
    noise: Noise | None = None
    noise_from: NoiseFrom = "unknown"
    band: float | None = None
    band_source: BandSource = "family"
    smallest: float | None = None
    odds: tuple[Odds, ...] = ()
    test: AnyTest | None = None
    problem: InputError | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def control(self) -> Control | None:
        """Whether the other build would be started beside the new one; None: it does not matter."""
        return self.test.design.control if isinstance(self.test, SpeedTest) else None


def placed(probe: Probe, metric: str, error: InputError, hint: str | None = None) -> InputError:
    """The error with the place in the scenario's file that it is about."""
    return InputError(
        f"{probe.label}: {error.problem}",
        file=probe.scenario.file,
        field=f"{probe.scenario.id}.gate.bands.{metric}",
        found=error.found,
        expected=error.expected,
        hint=hint or error.hint,
    )
