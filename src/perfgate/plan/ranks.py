"""Ranks: how many processes of the engine there are, where, and what each of them runs."""

from dataclasses import dataclass

from perfgate.core.errors import InputError
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import HOSTS, Locations
from perfgate.core.programs.programs import TRTLLM_LAUNCH
from perfgate.scenarios.scenario import Scenario


@dataclass(frozen=True)
class Ranks:
    """One rank per GPU (DeepSeek-V3 example, "Multi-node"): nodes, and ranks on each of them."""

    nodes: int
    per_node: int

    @property
    def total(self) -> int:
        """Ranks on all nodes."""
        return self.nodes * self.per_node


def ranks_of(scenario: Scenario) -> Ranks:
    """The ranks of the scenario's engine.

    Raises:
        InputError: the GPUs cannot be divided evenly among the nodes.
    """
    gpus, nodes = scenario.hardware.gpus, scenario.hardware.nodes
    if gpus % nodes or not gpus:
        raise InputError(
            "GPUs cannot be divided evenly among the nodes",
            file=scenario.file,
            field=f"{scenario.id}.hardware",
            found=f"{gpus} GPUs on {nodes} nodes",
            expected="the same number on each, at least one",
        )
    return Ranks(nodes, gpus // nodes)


def of_each_rank(
    command: Command, locations: Locations, *, in_container: bool = False
) -> list[str]:
    """What every rank runs: the engine under ``trtllm-llmapi-launch``, or a program of its own.

    It lets one rank run the program and has the others work for it (DeepSeek-V3 example,
    "Multi-node"; the GB200 recipe's job does so on a single node, too).

    Args:
        command: the engine's command.
        locations: where programs are.
        in_container: the program is found in the container, not here.
    """
    if command.on_every_rank:
        return [*command.argv]
    prefix = TRTLLM_LAUNCH.bare() if in_container else locations.find(TRTLLM_LAUNCH)
    return [*prefix, *command.argv]


def hosts_for(ranks: Ranks, locations: Locations) -> tuple[str, ...]:
    """The nodes by name, as many as there must be: placeholders on paper, else none if unnamed.

    Raises:
        InputError: some are named, but too few.
    """
    if not locations.hosts:
        if locations.on_paper:
            return tuple(f"<HOST{number}>" for number in range(1, ranks.nodes + 1))
        return ()
    if len(locations.hosts) < ranks.nodes:
        raise _too_few(locations.hosts, ranks)
    return locations.hosts[: ranks.nodes]


def required_hosts_for(ranks: Ranks, locations: Locations) -> tuple[str, ...]:
    """The same, for programs that find no nodes by themselves.

    Raises:
        InputError: too few are named, or none.
    """
    hosts = hosts_for(ranks, locations)
    if not hosts:
        raise _too_few(hosts, ranks)
    return hosts


def _too_few(hosts: tuple[str, ...], ranks: Ranks) -> InputError:
    return InputError(
        "too few nodes are named",
        field=HOSTS,
        found=" ".join(hosts) or "nothing",
        expected=f"{ranks.nodes} host names, separated by blanks or commas",
        hint=f"set {HOSTS} to the nodes, this one first",
    )
