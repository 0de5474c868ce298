"""What a load client's release, and the tokens that it counted, say of a measurement.

Facts for its record; nothing is refused here. Whether a documented value may be compared is judged
where verdicts are made.
"""

from collections.abc import Iterator, Sequence

from perfgate.clients.base import Client, Target, same_release
from perfgate.clients.datasets import not_sharegpt_v3
from perfgate.clients.report_tables import number_of
from perfgate.clients.serving_clients import ServingClient
from perfgate.core.measurement import Json, Measurement
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import Scenario, Workload

CLIENT_DIFFERS = "client_differs"
CLIENT_AND_SERVER_DIFFER = "client_and_server_differ"
DATASET_DIFFERS = "dataset_differs"
DATASET_NOT_COMPARABLE = "dataset_not_comparable"
_NOTED = (CLIENT_DIFFERS, CLIENT_AND_SERVER_DIFFER, DATASET_DIFFERS, DATASET_NOT_COMPARABLE)
SYNTHETIC_TOLERANCE = 0.001  # of all input tokens: encoding generated text again joins a few
REAL_TOLERANCE = 0.1  # of the mean lengths that real prompts are asked to have


def client_facts(
    client: Client, target: Target, scenario: Scenario, build: EngineBuild, measured: Measurement
) -> dict[str, Json]:
    """What is to be told of the client and of the dataset.

    Args:
        client: what measured.
        target: with the client's release, and where datasets are.
        scenario: what was measured.
        build: the engine's.
        measured: what the client reported.

    Returns:
        ``client_version``; ``client_differs``: the document measured with another release;
        ``client_and_server_differ``: they are one project's, and not of one release;
        ``dataset_differs``: the prompts are not the document's, by the number of their tokens or,
        where that cannot tell, by the dataset's file, or real prompts are on average more than a
        tenth shorter or longer than asked, so that no documented value is comparable;
        ``dataset_not_comparable``: the number of tokens cannot tell. Each is a sentence; those
        that do not apply are left out.
    """
    load, version = scenario.workload, target.client_version
    if load is None:
        return {}
    facts = other_lengths(load, measured)
    if client.of_engine or not version:
        return facts
    facts["client_version"] = version
    documented = load.client_version
    if documented is not None and not same_release(documented, version):
        told = f"{client.name} {version} measured, the document's values are of {documented}"
        facts[CLIENT_DIFFERS] = told
    if client.source == build.name and not same_release(version, build.version):
        told = f"client {version}, server {build.version}: releases of {build.name} are mixed"
        facts[CLIENT_AND_SERVER_DIFFER] = told
    by_tokens = _by_tokens(client, target, scenario, measured)
    if load.dataset == "sharegpt" and (by_tokens is None or DATASET_NOT_COMPARABLE in by_tokens):
        other = not_sharegpt_v3(target.locations)
        facts |= {} if other is None else {DATASET_DIFFERS: other}
    return {**facts, **(by_tokens or {})}


def notes(measurements: Sequence[Measurement]) -> Iterator[str]:
    """What a person should know of the client, the server and the prompts, each said once.

    Settings that were asked for and that a report does not show, then what differs.
    """
    silent = [one.facts.get("asked_not_reported") for one in measurements]
    names = dict.fromkeys(str(name) for one in silent if isinstance(one, list) for name in one)
    if names:
        missing = f"the report does not show {', '.join(names)}"
        yield f"{missing}: that it was in force as asked is not established"
    yield from dict.fromkeys(
        str(one.facts[name]) for one in measurements for name in _NOTED if name in one.facts
    )


def other_lengths(load: Workload, measured: Measurement) -> dict[str, Json]:
    """``dataset_differs`` where real prompts or answers are on average not as long as asked.

    Args:
        load: what was asked; of generated prompts nothing is said, their lengths are required.
        measured: with the facts ``isl`` and ``osl``, mean tokens of a request.
    """
    if load.dataset != "real":
        return {}
    other = [
        f"mean {name.upper()} {length:.6g} tokens, the scenario has {wanted}"
        for name, wanted in (("isl", load.isl), ("osl", load.osl))
        if wanted is not None
        and (length := number_of(measured.facts, name)) is not None
        and abs(length - wanted) > REAL_TOLERANCE * wanted
    ]
    return {DATASET_DIFFERS: "; ".join(other)} if other else {}


def _by_tokens(
    client: Client, target: Target, scenario: Scenario, measured: Measurement
) -> dict[str, Json] | None:
    """Whether the prompts are the document's, by their tokens; None: none are documented.

    Where the server counts them, a chat template is part of them: they tell nothing of the dataset.
    """
    load, found = scenario.workload, measured.facts.get("input_tokens")
    if load is None or load.input_tokens is None or len(scenario.points()) != 1:
        return None
    if not isinstance(found, int):
        return None
    documented = load.input_tokens
    table = client.options(target).table if isinstance(client, ServingClient) else None
    if table is not None and table.input_counted_by == "server":
        told = (
            f"{client.name} {target.client_version} counts input tokens by the server's usage, "
            f"chat template and all: {found} cannot be compared with the {documented} documented"
        )
        return {DATASET_NOT_COMPARABLE: told}
    tolerance = SYNTHETIC_TOLERANCE if load.dataset == "synthetic" else 0.0
    if abs(found - documented) <= tolerance * documented:
        return {}
    told = (
        f"{found} input tokens, {documented} documented: other prompts than the document's "
        "(another dataset file, tokenizer, seed, or release of the client)"
    )
    return {DATASET_DIFFERS: told}
