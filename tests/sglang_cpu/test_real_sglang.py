"""A real SGLang, its kernels stubbed, through perfgate's own road: a good run, and each fault.

Each test starts a server, which takes 20 s on two idle cores: `make sglang-test` runs them.
"""

import os
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from real_sglang import (
    MODEL,
    MODELS,
    PARENT,
    SCHEDULER,
    Running,
    Session,
    checkout,
    require_sglang,
)

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.usefixtures("sglang")]

OF_ENGINE = 11  # the exit status of a session whose engine failed
REHEARSED = 13
CRASHED = "crashed with exit code"


@pytest.fixture(scope="module")
def sglang() -> None:
    require_sglang()


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


def error_of(session: Session) -> dict[str, Any]:
    """The error of the session's one verdict; nothing was measured, and nothing is left."""
    assert session.left() == [], session.output
    (verdict,) = session.of("verdict")
    assert verdict["verdict"] == "ERROR", session.output
    assert session.of("measurement") == []
    assert session.status == OF_ENGINE, session.output
    error: dict[str, Any] = verdict["error"]
    assert error["next_step"]
    return error


def under_load(title: str, number: int) -> Callable[[Running], bool]:
    """Sends a signal to one process of the server once the client is at work."""

    def act(running: Running) -> bool:
        victim = running.of_server(title) if running.is_loaded() else None
        if victim is not None:
            victim.send_signal(number)
        return victim is not None

    return act


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
    error = error_of(checkout(tmp_path / "checkout").run(act=under_load(title, number)))
    assert error["class"] == failure
    assert "server" in error["message"]


def test_a_port_that_another_program_took_while_the_model_was_loaded(tmp_path: Path) -> None:
    """SGLang binds after it has loaded the model, and warms up whoever answers there."""
    with ExitStack() as stack:

        def take(running: Running) -> bool:
            port = running.port()
            if port is None or running.of_server(PARENT) is None:
                return False
            stranger = stack.enter_context(socket.socket())
            stranger.bind(("127.0.0.1", port))
            stranger.listen()
            return True

        session = checkout(tmp_path / "checkout").run(act=take)
    assert error_of(session)["class"] == "port_in_use"


def test_a_context_that_the_model_does_not_have(tmp_path: Path) -> None:
    def change(scenario: dict[str, Any], defaults: dict[str, Any]) -> None:
        defaults["engine"]["settings"]["max_seq_len"] = 1_000_000

    error = error_of(checkout(tmp_path / "checkout", change).run())
    assert error["class"] == "config_error"
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
    assert error_of(session)["class"] == "model_file"


def test_a_setting_that_the_server_does_not_take_over(tmp_path: Path) -> None:
    """An extra option says otherwise than the setting: the last one wins, and is noticed."""

    def change(scenario: dict[str, Any], defaults: dict[str, Any]) -> None:
        extra = defaults["engine"]["extra_args"]["sglang.launch_server"]
        extra += ["--max-running-requests", "3"]

    session = checkout(tmp_path / "checkout", change).run()
    assert session.left() == [], session.output
    (verdict,) = session.of("verdict")
    assert verdict["verdict"] == "ERROR", session.output
    assert session.of("measurement") == []
