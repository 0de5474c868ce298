"""Posting to a real server on this machine: what is known of a message afterwards."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from webhook_server import PATH, TOKEN, WebhookServer, answer

from perfgate.cli.webhook import address_of, post
from perfgate.core import redaction
from perfgate.core.errors import InputError

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_given", set())


@pytest.fixture
def server() -> Iterator[WebhookServer]:
    made = WebhookServer()
    yield made
    made.close()


def unused_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


PAYLOAD = {"text": "two\nlines & ü"}


@pytest.mark.parametrize("status", [200, 201, 204])
def test_a_post_that_is_taken_is_told(server: WebhookServer, status: int) -> None:
    server.act = answer(status, "")
    assert post(server.url, PAYLOAD).fate == "told"
    assert server.got == [(PATH, PAYLOAD)]


@pytest.mark.parametrize("status", [400, 403, 404, 410, 429, 500, 502, 503])
def test_a_post_that_is_refused_is_not_told_and_not_repeated(
    server: WebhookServer, status: int
) -> None:
    server.act = answer(status, "no_such_hook")
    posted = post(server.url, PAYLOAD)
    assert posted.fate == "not told"
    assert posted.why == f"it answered with status {status}: no_such_hook"
    assert len(server.got) == 1


def test_a_gateway_that_lost_patience_leaves_open_what_the_receiver_did(
    server: WebhookServer,
) -> None:
    server.act = answer(504)
    assert post(server.url, PAYLOAD).fate == "unknown"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(server: WebhookServer, status: int) -> None:
    other = WebhookServer()
    server.act = answer(status, Location=other.url)
    posted = post(server.url, PAYLOAD)
    other.close()
    assert posted.fate == "not told"
    assert "redirects are not followed" in posted.why
    assert (len(server.got), other.got) == (1, [])


def test_nobody_there_is_not_told() -> None:
    posted = post(f"http://127.0.0.1:{unused_port()}{PATH}", PAYLOAD)
    assert posted.fate == "not told"
    assert "refused" in posted.why


def test_a_name_that_is_none_is_not_told() -> None:
    assert post(f"https://nowhere.invalid{PATH}", PAYLOAD).fate == "not told"


def test_a_server_without_a_certificate_gets_nothing(server: WebhookServer) -> None:
    posted = post(server.url.replace("http:", "https:"), PAYLOAD)
    assert posted.fate == "not told"
    assert server.got == []


def test_no_connection_in_time_is_not_told_and_nothing_is_sent_later() -> None:
    with socket.socket() as full:
        # Its backlog is full, so that connections wait.
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        posted = post(f"http://127.0.0.1:{port}{PATH}", PAYLOAD, 0.3)
        for one in waiting:
            one.close()
    assert posted.fate == "not told"


def test_a_name_that_is_found_too_late_leads_to_nothing_sent(
    server: WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, look_up = threading.Event(), socket.getaddrinfo

    def slow(*given: Any, **named: Any) -> Any:
        found.wait()
        return look_up(*given, **named)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    before = set(threading.enumerate())
    posted = post(server.url, PAYLOAD, 0.2)
    assert (posted.fate, posted.why) == ("not told", "no connection within 0.2 s")
    (late,) = (one for one in threading.enumerate() if one.name == "webhook" and one not in before)
    found.set()
    late.join()
    assert server.got == []


def test_no_answer_in_time_may_have_been_told(server: WebhookServer) -> None:
    server.act = lambda _: (server.end.wait(20), None)[1]
    posted = post(server.url, PAYLOAD, 0.4)
    assert (posted.fate, posted.why) == ("unknown", "no answer within 0.4 s")
    assert len(server.got) == 1


def test_a_connection_that_breaks_after_the_request_may_have_been_told(
    server: WebhookServer,
) -> None:
    server.act = lambda handler: handler.connection.shutdown(socket.SHUT_RDWR)
    assert post(server.url, PAYLOAD).fate == "unknown"


def test_headers_in_drops_do_not_outlast_the_time(server: WebhookServer) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while not server.end.wait(0.02):
            handler.wfile.write(b"x")

    server.act = drip
    assert post(server.url, PAYLOAD, 0.4).fate == "unknown"  # each drop alone is in time


@pytest.mark.parametrize(("status", "fate"), [(200, "told"), (500, "not told")])
def test_a_body_in_drops_changes_nothing_of_what_the_status_says(
    server: WebhookServer, status: int, fate: str
) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        while not server.end.wait(0.02):
            handler.wfile.write(b"x")

    server.act = drip
    assert post(server.url, PAYLOAD, 0.4).fate == fate


def test_of_a_long_answer_a_little_is_shown_nothing_hidden_and_no_address(
    server: WebhookServer,
) -> None:
    assert address_of({"PERFGATE_WEBHOOK": server.url}) == server.url
    server.act = answer(403, f"no hook {TOKEN} \x1b[2J" + "y" * 5000)
    why = post(server.url, PAYLOAD).why
    assert TOKEN not in why
    assert TOKEN.rpartition("/")[2] not in why
    assert "\x1b" not in why
    assert len(why) < 260
    assert why.endswith("y…")


def test_a_proxy_of_the_network_is_no_way_to_this_machine(
    server: WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{unused_port()}")
    assert post(server.url, PAYLOAD).fate == "told"


def test_a_proxy_of_the_environment_is_used_for_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def serve() -> None:
            connection, _ = proxy.accept()
            with connection:
                asked.append(connection.recv(1000))
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        posted = post(f"https://hooks.example{PATH}", PAYLOAD)
        thread.join()
    assert asked[0].startswith(b"CONNECT hooks.example:443 HTTP/1.")
    assert TOKEN.encode() not in asked[0]
    assert posted.fate == "not told"  # the proxy refused before anything was sent


@pytest.mark.parametrize(
    "address",
    [
        "https://hooks.example/services/T/B/x",
        "https://hooks.example:8443/x?key=1",
        "http://localhost:8000/x",
        "http://127.0.0.1/x",
        "http://127.1.2.3:1/x",
        "http://[::1]:8000/x",
        "  https://hooks.example/x\n",
    ],
)
def test_addresses_that_a_secret_may_be_sent_to(address: str) -> None:
    assert address_of({"PERFGATE_WEBHOOK": address}) == address.strip()


@pytest.mark.parametrize(
    "address",
    [
        "http://hooks.example/services/T/B/secret",
        "http://127.0.0.1.hooks.example/secret",
        "http://localhost.hooks.example/secret",
        "ftp://hooks.example/secret",
        "file:///etc/secret",
        "hooks.example/secret",
        "https:///secret",
        "https://user:secret@hooks.example/secret",  # pragma: allowlist secret
        "https://hooks.example:port/secret",
        "https://[::1/secret",
        "https://hooks.example/sec ret",
        "https://hooks.example/sec\nret",
        "https://hooks.example/sécret",
    ],
)
def test_other_addresses_are_refused_and_not_shown(address: str) -> None:
    with pytest.raises(InputError, match="PERFGATE_WEBHOOK") as error:
        address_of({"PERFGATE_WEBHOOK": address})
    assert "cret" not in str(error.value).split("expected")[0]


@pytest.mark.parametrize("environment", [{}, {"PERFGATE_WEBHOOK": ""}, {"PERFGATE_WEBHOOK": " "}])
def test_without_an_address_nothing_is_to_be_told(environment: dict[str, str]) -> None:
    assert address_of(environment) is None
