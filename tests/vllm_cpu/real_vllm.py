"""Sessions of the suite on a real vLLM on the CPU."""

from collections.abc import Callable, Sequence
from pathlib import Path

from real_engine import Checkout, Plain, RealEngine, local_scenarios, repository

PROGRAM = "PERFGATE_PROGRAM_VLLM_SERVE"
SERVE = "vllm serve"
_SCORES = ["accuracy:perfgate_arithmetic:exact_match:strict-match"]

Change = Callable[[Plain, Plain], None]


def _is_server(words: Sequence[str], title: str) -> bool:
    called = (at for at, word in enumerate(words[:-1]) if word.endswith("/bin/vllm"))
    return title in (*words[:1], *(f"vllm {words[at + 1]}" for at in called))


VLLM = RealEngine(
    "vllm",
    "PERFGATE_REQUIRE_VLLM",
    (PROGRAM, "PERFGATE_PROGRAM_VLLM"),
    patience_s=900,  # a start takes half a minute on two quiet cores
    is_server=_is_server,
    parent=SERVE,
    keeps_memory=True,
)


def checkout(folder: Path, change: Change | None = None, name: str = "bench") -> Checkout:
    """A repository with one of the scenarios: one start of it, no reference.

    Args:
        folder: made here.
        name: ``bench``, which vLLM's own client loads, or ``serve``.
        change: changes the scenario, and the defaults of its file.
    """
    plain = local_scenarios(VLLM)
    plain.pop("claims", None)
    (scenario,) = [one for one in plain["scenarios"] if one["id"].endswith(name)]
    plain["scenarios"] = [scenario]
    scenario.pop("gate", None)
    if change is not None:
        change(scenario, plain["defaults"])
    kept = plain["defaults"]["gate"]["disturbance"]
    plain["defaults"]["gate"] = {
        "metrics": ["output_throughput", *_SCORES[: len(scenario.get("accuracy", ()))]],
        "max_starts": 1,
        "disturbance": kept,
    }
    plain["defaults"]["limits"]["start_s"] = 600
    return repository(folder, VLLM, plain)
