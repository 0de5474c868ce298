"""Webhook: one JSON message posted to the address in PERFGATE_WEBHOOK, which is a secret.

It is never tried twice, since what a receiver has taken is posted in a channel. So what became of
it is one of three: told, not told for certain, or not known.
"""

import http.client
import ipaddress
import json
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from perfgate.core.errors import InputError
from perfgate.core.redaction import redact, remember

VARIABLE = "PERFGATE_WEBHOOK"
WITHIN_S = 10.0  # all of it: name, connection, answer
_SHOWN = 200  # characters of an answer
_SHORTEST_TOKEN = 12
_GATEWAY_TIMEOUT = 504  # the one status that leaves open whether the receiver behind took it

# `not told`: certainly not, it may be tried again; `unknown`: it may have been.
Fate = Literal["told", "not told", "unknown"]


@dataclass(frozen=True)
class Posted:
    """What became of a message; `why` says it in words, without the address."""

    fate: Fate
    why: str = ""


def address_of(environment: Mapping[str, str]) -> str | None:
    """The webhook's address; None: none is set, so nothing is to be told.

    Raises:
        InputError: it is no address that a secret may be sent to.
    """
    address = environment.get(VARIABLE, "").strip()
    if not address:
        return None
    remember({VARIABLE: address})
    with suppress(ValueError):
        parts = urlsplit(address)
        usable = address.isascii() and address.isprintable() and " " not in address
        host, _ = parts.hostname, parts.port  # a port that is none is a ValueError
        secure = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host or ""))
        if usable and host and secure and "@" not in parts.netloc:
            _remember_parts(parts.path, parts.query)
            return address
    raise InputError(
        "not an address that messages are sent to",
        field=VARIABLE,
        found=address,
        expected="https://HOST/PATH without user and password; http:// for this machine alone",
        hint=f"unset {VARIABLE} where nothing is to be told",
    )


def post(address: str, payload: Mapping[str, Any], within_s: float = WITHIN_S) -> Posted:
    """Post the payload once; redirects are not followed.

    Args:
        address: as `address_of` gives it.
        payload: what is sent, as JSON.
        within_s: seconds for all of it.
    """
    attempt = _Attempt()
    request = urllib.request.Request(  # noqa: S310, the scheme was checked
        address,
        json.dumps(payload).encode(),
        {"Content-Type": "application/json", "User-Agent": "perfgate"},
    )
    # A thread, since no timeout of a socket covers the look-up of a name or an answer in drops.
    thread = threading.Thread(
        target=attempt.run, args=(request, within_s), name="webhook", daemon=True
    )
    thread.start()
    thread.join(within_s)
    return attempt.outcome(within_s)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _remember_parts(path: str, query: str) -> None:
    """Let the telling parts of the address be masked alone, too: an answer may repeat them."""
    last = path.rstrip("/").rpartition("/")[2]
    parts = (path.lstrip("/"), last, query)
    found = (one for one in parts if len(one) >= _SHORTEST_TOKEN)
    for one in found:
        remember({VARIABLE: one})


class _TooLate(OSError):
    """The time was up before anything was sent, and nothing will be."""


@dataclass
class _Attempt:
    """One post, in a thread of its own.

    Attributes:
        sending: whether a byte of the request may have been sent.
        status: of the answer; None: there was none yet.
        given_up: whether nothing must be sent any more.
        error: what ended it.
        body: the beginning of the answer to a post that was refused.
    """

    sending: bool = False
    status: int | None = None
    given_up: bool = False
    error: BaseException | None = None
    body: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, request: urllib.request.Request, within_s: float) -> None:
        """Post it, and note how far it came."""
        handlers: list[urllib.request.BaseHandler] = [_Secure(self), _Plain(self), _NoRedirect()]
        if request.type == "http":  # to this machine: a proxy of the network is no way to it
            handlers.append(urllib.request.ProxyHandler({}))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=within_s) as answer:
                self.status = answer.status
        except urllib.error.HTTPError as refused:
            self.status = refused.code
            with refused, suppress(OSError, http.client.HTTPException):
                self.body = refused.read(4 * _SHOWN).decode(errors="replace")
        except Exception as error:
            self.error = error

    def begin_sending(self) -> None:
        """Note that the next byte is one of the request.

        Raises:
            _TooLate: nothing may be sent any more.
        """
        with self.lock:
            if self.given_up:
                raise _TooLate("too late")
            self.sending = True

    def outcome(self, within_s: float) -> Posted:
        """How far it came; what has not begun by now never will."""
        with self.lock:
            self.given_up = True
        if self.status is not None:
            return self._answered(self.status)
        why = f"no answer within {within_s:g} s"
        if self.error is not None:
            why = _in_words(self.error)
        elif not self.sending:
            why = f"no connection within {within_s:g} s"
        return Posted("unknown" if self.sending else "not told", why)

    def _answered(self, status: int) -> Posted:
        if 200 <= status < 300:
            return Posted("told")
        said = " ".join(redact(self.body).split())
        said = f": {said[:_SHOWN]}{'…' * (len(said) > _SHOWN)}" if said else ""
        hint = " (redirects are not followed)" if 300 <= status < 400 else ""
        fate: Fate = "unknown" if status == _GATEWAY_TIMEOUT else "not told"
        return Posted(fate, f"it answered with status {status}{hint}{said}")


def _in_words(error: BaseException) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    text = " ".join(redact(str(reason)).split()) or type(reason).__name__
    return text[:_SHOWN]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Answers of another place stay unread."""

    def redirect_request(self, *_: object) -> None:
        """None: it is not followed."""


class _Secure(urllib.request.HTTPSHandler):
    def __init__(self, attempt: _Attempt) -> None:
        super().__init__(context=ssl.create_default_context())
        self._attempt = attempt

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        attempt = self._attempt

        class Connection(http.client.HTTPSConnection):
            def connect(self) -> None:
                super().connect()  # name, connection, proxy, certificate
                attempt.begin_sending()

        return self.do_open(Connection, req, context=self._context)  # type: ignore[attr-defined]


class _Plain(urllib.request.HTTPHandler):
    def __init__(self, attempt: _Attempt) -> None:
        super().__init__()
        self._attempt = attempt

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        attempt = self._attempt

        class Connection(http.client.HTTPConnection):
            def connect(self) -> None:
                super().connect()
                attempt.begin_sending()

        return self.do_open(Connection, req)
