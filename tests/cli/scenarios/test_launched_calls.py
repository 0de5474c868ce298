"""`scenarios command --launcher …`: the calls of a fresh start as each launcher makes them."""

import shlex
from pathlib import Path

import pytest
from command_line import Perfgate
from tables import each

from perfgate.cli.scenarios.command import OTHERS
from perfgate.cli.scenarios.launched_calls import PLACES, launched_calls
from perfgate.core.errors import InputError
from perfgate.core.files.paths import repository
from perfgate.engines.base import EngineBuild
from perfgate.launchers.site import Site
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Scenario

SERVED, RANKS = "h200-r1-0528-fp8-serve", "gb200-r1-fp4-2node-slurm"
CLIENT = "h200-v3-fp8-serve"  # whose load client comes with the engine
ALL = load_scenarios(repository() / "scenarios")
SUITE = [one for one in ALL if one.engine.name != "llama.cpp"]  # its model is an installed package


@pytest.fixture
def calls(perfgate: Perfgate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By role, the words of the last call of a scenario, at a site."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def calls(launcher: str, name: str, site: str = "") -> dict[str, list[str]]:
        file = tmp_path / "site.yaml"
        file.write_text(f"schema_version: 1\n{site}\n")
        words = ["scenarios", "command", name, "--launcher", launcher, "--site", file]
        text = perfgate.printed(words).partition("\n#\n# ")[2]
        made = [one.partition("\n") for one in text.replace("\\\n#", "").split("\n#\n# ")]
        return {role.split()[0]: shlex.split(body, comments=False) for role, _, body in made}

    return calls


def follow(words: list[str], *expected: str) -> bool:
    """Whether these words stand in one piece among the others."""
    text = "\0".join(["", *words, ""])
    return "\0".join(["", *expected, ""]) in text


def test_docker_has_the_engine_in_its_image_and_other_clients_outside(calls) -> None:
    made = calls("docker", SERVED)
    image = "nvcr.io/nvidia/tensorrt-llm/release:1.0.0rc6"
    assert follow(made["server"], "docker", "run", "--rm", "--ipc=host", "--gpus", "all")
    assert follow(made["server"], "--network", "host")
    assert follow(made["server"], image, "trtllm-serve", "deepseek-ai/DeepSeek-R1-0528")
    assert follow(made["server"], "--host", "127.0.0.1")
    assert follow(made["server"], "-v", "<RUN>:<RUN>", "-w", "<RUN>")
    assert made["smoke"][1] == "curl"
    assert "lm_eval" in made["evaluator"]
    assert "docker" not in made["evaluator"]


def test_in_a_network_of_its_own_the_port_is_published_and_clients_join(calls) -> None:
    made = calls("docker", CLIENT, "docker: {network: bridge, image: mine:1, ipc: null}")
    server, client = made["server"], made["client"]
    assert follow(server, "--network", "bridge", "-p", "127.0.0.1:8000:8000")
    assert follow(server, "--host", "0.0.0.0")  # noqa: S104
    assert follow(client, "--network", "container:perfgate-server-<ID>")
    assert "-p" not in client
    assert {"mine:1"} <= {*server} & {*client}


def test_mpirun_starts_ranks_or_one_process_on_the_first_host(calls) -> None:
    ranks = calls("mpirun", RANKS, "mpirun: {ssh_port: 22, clients: beside}")
    assert follow(ranks["benchmark"], "-H", "<HOST1>:4,<HOST2>:4")
    assert follow(ranks["benchmark"], "trtllm-llmapi-launch", "trtllm-bench")
    assert follow(ranks["benchmark"], "-p 22")
    assert follow(ranks["prepare_dataset"], "-H", "<HOST1>:1", "-n", "1", "python")
    served = calls("mpirun", CLIENT)
    assert follow(served["server"], "--bind-to", "none", "-H", "<HOST1>:1", "-n", "1")
    assert follow(served["server"], "--host", "<HOST1>")
    assert "mpirun" not in served["client"]


@each("launcher", ["mpirun", "slurm"])
def test_who_can_reach_the_server_is_told(perfgate: Perfgate, launcher: str) -> None:
    text = perfgate.printed(["scenarios", "command", SERVED, "--launcher", launcher])
    assert f"asks for no key: whoever reaches it can use it ({launcher}.listen in" in text


def test_the_command_offers_each_launcher_whose_calls_it_can_print() -> None:
    assert sorted(OTHERS) == sorted(PLACES)


@each("launcher", PLACES)
@each("scenario", SUITE, ids=lambda one: one.id)
def test_every_documented_scenario_is_printed_or_refused(scenario: Scenario, launcher: str) -> None:
    release = scenario.source.engine_version or "1.0.0"
    build = EngineBuild(scenario.engine.name, release, release)
    made = launched_calls(launcher, scenario, build, Site())
    if launcher == "docker" and scenario.launch:
        with pytest.raises(InputError, match="--launcher docker starts no ranks"):
            list(made)
        return
    lines = list(made)
    start = next(at for at, line in enumerate(lines) if line.endswith(":") and ", for " in line)
    assert all(line == "#" or line.startswith("# ") for line in lines[start:])
    assert len(lines) > start + 3
