"""A real SGLang, its kernels stubbed, through perfgate's own road: a good run, and each fault.

Each test starts a server, which takes 20 s on two idle cores: `make sglang-test` runs them.
"""

import os
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from real_engine import MODEL, MODELS, Running, under_load
from real_sglang import PARENT, SCHEDULER, SGLANG, checkout

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.usefixtures("sglang")]

REHEARSED = 13
TRIES = 2  # of a server whose port is taken before it has it
CRASHED = "crashed with exit code"


@pytest.fixture(scope="module")
def sglang() -> None:
    SGLANG.require()


def test_a_session_that_nothing_is_wrong_with_proves_no_speed(tmp_path: Path) -> None:
    session = checkout(tmp_path / "checkout").run()
    assert session.left() == [], session.output
    (measured,) = session.of("measurement")
    assert measured["synthetic"] is True
    facts = measured["facts"]
    assert facts["settings_told_by"] in ("/get_server_info", "/server_info")
    in_force = facts["settings_in_force"]
    asked = {"max_batch_size": 4, "max_seq_len": 2048, "attention_backend": "torch_native"}
    assert asked.items() <= in_force.items()
    assert (in_force["overlap_scheduler"], in_force["kv_cache_reuse"]) == (False, False)
    assert "api_key" not in str(session.of("measurement"))
    (verdict,) = session.of("verdict")
    assert verdict["verdict"] == "NO_BASELINE"
    assert verdict["synthetic"] is True
    assert session.status == REHEARSED, session.output
    assert "synthetic NO_BASELINE" in session.output
    # Our own stop is no crash, not even in the server's own eyes.
    assert "are stubs here" in session.log()
    assert CRASHED not in session.log()


@pytest.mark.parametrize(
    ("title", "number", "failure"),
    [
        # It ends itself by signal 9 six seconds later; its client is done before.
        pytest.param(SCHEDULER, signal.SIGKILL, "killed", id="scheduler-killed"),
        pytest.param(PARENT, signal.SIGKILL, "killed", id="parent-killed"),
        pytest.param(PARENT, signal.SIGTERM, "server_died", id="asked-to-end-by-another"),
    ],
)
def test_a_server_that_ends_under_load(
    title: str, number: int, failure: str, tmp_path: Path
) -> None:
    error = checkout(tmp_path / "checkout").run(act=under_load(title, number)).error()
    assert error["error_class"] == failure
    assert "server" in error["message"]


def test_ports_that_another_program_takes_while_the_model_is_loaded(tmp_path: Path) -> None:
    """SGLang binds after it has loaded the model: with one port taken there is a second start.

    When that one's port is taken, too, it is an error.
    """
    with ExitStack() as stack:
        taken: set[int] = set()

        def take(running: Running) -> bool:
            port = running.port()
            if port is None or port in taken or running.server(PARENT) is None:
                return len(taken) == TRIES
            stranger = stack.enter_context(socket.socket())
            stranger.bind(("127.0.0.1", port))
            stranger.listen()
            taken.add(port)
            return len(taken) == TRIES

        session = checkout(tmp_path / "checkout").run(act=take)
    assert session.error()["error_class"] == "port_in_use"


def test_a_context_that_the_model_does_not_have(tmp_path: Path) -> None:
    def change(scenario: dict[str, Any], defaults: dict[str, Any]) -> None:
        defaults["engine"]["settings"]["max_seq_len"] = 1_000_000

    error = checkout(tmp_path / "checkout", change).run().error()
    assert error["error_class"] == "config_error"
    assert "derived context_length (8192)" in str(error)


def test_a_model_without_its_weights(tmp_path: Path) -> None:
    models = tmp_path / "models"
    broken = models / MODEL
    broken.mkdir(parents=True)
    for file in (Path(os.environ[MODELS]) / MODEL).iterdir():
        if file.suffix == ".safetensors":
            (broken / file.name).write_bytes(b"not weights")
        else:
            (broken / file.name).symlink_to(file)
    session = checkout(tmp_path / "checkout").run(environment={MODELS: str(models)})
    assert session.error()["error_class"] == "model_file"


def test_an_option_that_says_otherwise_than_a_setting_starts_nothing(tmp_path: Path) -> None:
    def change(scenario: dict[str, Any], defaults: dict[str, Any]) -> None:
        extra = defaults["engine"]["extra_args"]["sglang.launch_server"]
        extra += ["--max-running-requests", "3"]

    session = checkout(tmp_path / "checkout", change).run()
    assert session.status == 4, session.output
    assert "use engine.settings.max_batch_size" in session.output
    assert not session.run.exists()
