"""Release coverage: whether perfgate knows the release that a person says is under test."""

from collections.abc import Iterable

from perfgate.core.errors import InputError
from perfgate.engines.base import engine
from perfgate.plan.toolchain import option_for
from perfgate.scenarios.scenario import Scenario


def uncovered(scenarios: Iterable[Scenario], version: str | None) -> tuple[str, ...]:
    """What is not known of the release, for each engine of the scenarios; empty: all is known.

    Args:
        scenarios: what is to be measured or rendered.
        version: as ``--engine-version`` says it; None: the programs are asked.

    Raises:
        InputError: it is no release of one of the engines, or of none that is measured.
    """
    if version is None:
        return ()
    names = sorted({scenario.engine.name for scenario in scenarios})
    meant = {name: said for name in names if (said := option_for(name, version))}
    if names and not meant:
        raise InputError(
            "this release is of no engine that is measured",
            field="engine version",
            found=version,
            expected=" or ".join(f"{name}=RELEASE" for name in names),
            hint="a bare release is TensorRT-LLM's",
        )
    return tuple(told for name, said in meant.items() if (told := engine[name]().uncovered(said)))
