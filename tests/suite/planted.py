"""Secrets of many kinds, where they are planted, and where they are looked for.

All are made up here from pieces, so that no scanner of repositories takes one for real.
"""

import base64
import stat
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import forked
from sessions import inherited

from perfgate.reports.formats.base import report_format

Place = Literal["environment", "scenario", "site", "option", "log"]

_RAW = (".out", ".err", ".txt")  # of logs, and of what programs print as a result
_KEY = "\n".join(f"{n:02d}{'Kx9w' * 15}Q=" for n in range(4))


@dataclass(frozen=True)
class Planted:
    """A secret that must be found nowhere, and the text around it, or variable, that has it."""

    kind: str
    place: Place
    secret: str
    text: str = "{}"
    name: str = ""

    @property
    def planted(self) -> str:
        return self.text.replace("{}", self.secret)


def _hex(seed: str, length: int = 40) -> str:
    return (base64.b16encode(seed.encode()).decode().lower() * 9)[:length]


def _variable(name: str, secret: str, text: str = "{}", place: Place = "environment") -> Planted:
    return Planted(name, place, secret, text, name)


def _logged(kind: str, secret: str, text: str = "{}") -> Planted:
    return Planted(kind, "log", secret, text)


_LINES = f"-----BEGIN RSA PRIVATE KEY-----\n{_KEY}\n-----END RSA PRIVATE KEY-----"
_LM_EVAL = "/usr/bin/env LM_API_KEY={} lm_eval"
_SIGNED = "https://s3.example/m?X-Amz-Credential=abc&X-Amz-Signature={}"
SECRETS = (
    _variable("HF_TOKEN", "hf_" + "QwErTy12" * 4 + "Ab"),
    _variable("GITHUB_PAT", _hex("pat")),
    _variable("CI_JOB_JWT", f"eyJ{_hex('a')}.eyJ{_hex('b')}.{_hex('c')}"),
    _variable("SESSION_COOKIE", "sid-" + _hex("cookie")),
    _variable("HF_ENDPOINT", "hubpass-" + _hex("hub", 12), "https://bot:{}@hub.example/api"),
    _variable("https_proxy", "proxypass-" + _hex("proxy", 12), "http://me:{}@proxy.example:3128"),
    _variable("WANDB_API_KEY", _hex("wandb")),
    _variable("GPG_PASSPHRASE", "correct horse " + _hex("gpg", 8)),
    _variable("MYSQL_PWD", "pg-" + _hex("pg", 16)),
    _variable("PERFGATE_PROGRAM_LM_EVAL", "llm-" + _hex("call", 20), _LM_EVAL),
    _variable("SERVICE_TOKEN", "svc-" + _hex("svc", 24), place="scenario"),
    _variable("MODEL_SOURCE", _hex("amz", 64), _SIGNED, "scenario"),
    Planted("site option", "site", "site-" + _hex("site", 24), "--env=REGISTRY_PASSWORD={}"),
    Planted("option", "option", "-x" + _hex("option", 24), "--api-key\n{}"),
    Planted("password of -u", "option", "upw-" + _hex("user", 12), "-u\nme:{}"),
    _logged("password in an address", "S3cr3t@w0rd", "GET https://user:{}@hub failed"),
    _logged("GitHub", "github_pat_" + "11ABCDEFG0" * 5),
    _logged("GitHub App", "ghs_" + "a1B2c3D4" * 5, "clone {}: denied"),
    _logged("NVIDIA", "nvapi-" + "Zz-9_" * 12),
    _logged("AWS", "AKIA" + "Q7ZZ" * 4, "id {}."),
    _logged("GitLab", "glpat-" + "x9_Yz" * 4),
    _logged("Slack", "xoxb-" + "123456789012-" * 2 + "AbCdEf"),
    _logged("OpenAI", "sk-" + "proj-" + "T3st" * 10),
    _logged("Google", "AIza" + "Sy_D-" * 7),
    _logged("Azure signature", "aB%2Fc" * 8, "https://b.example/c?sv=1&se=2099&sig={}&sp=r"),
    _logged("bearer", "opaque." + _hex("bearer", 30), "Authorization: Bearer {}"),
    _logged("bearer alone", _hex("alone", 30), "sent with Bearer {} in it"),
    _logged("cookie header", _hex("sess", 20), "Cookie: lang=en; session={}"),
    _logged("password in JSON", "pw with blanks 7", '{"user": "me", "password": "{}"}'),
    _logged("option of a log", _hex("opt", 18), "args: ['--api-key', '{}', '--port', '1']"),
    _logged("private key", _KEY.splitlines()[2], _LINES),
)


def variables(place: Place) -> dict[str, str]:
    """The variables that are planted there."""
    return {one.name: one.planted for one in SECRETS if one.place == place}


def lines_of(place: Place) -> list[str]:
    """The texts that are planted there."""
    return [one.planted for one in SECRETS if one.place == place]


def hostile_log(environment: Mapping[str, str]) -> bytes:
    """A log whose last five lines have a secret of each kind, and what terminals obey.

    A program that knows the variables writes their values, too, as they are and in base64.
    """
    known = [*environment.values()]
    known.append(base64.b64encode(environment["GITHUB_PAT"].encode()).decode())
    texts = [*lines_of("log"), *known, "\x1b]0;owned\x07\x1b[2J\x00\u202egnp.\u2066", "[/bold]"]
    whole = [text for text in texts if "\n" in text or "Cookie" in text]
    rest = [text for text in texts if text not in whole and "Authorization" not in text]
    alone = [text for text in texts if "Authorization" in text]
    lines = [*whole, *alone, *(" ; ".join(rest[place::3]) for place in range(3))]
    return ("\n".join(lines) + "\n").encode()


def leaks(folder: Path, output: str, unread: frozenset[Path]) -> list[str]:
    """Where secrets are found: below the folder, but in raw logs that others cannot read.

    Files that the test planted the secrets in are left `unread`.
    """
    found = [f"{one.kind}: output" for one in SECRETS if one.secret in output]
    for path in (path for path in folder.rglob("*") if path.is_file() and path not in unread):
        content = path.read_bytes().decode(errors="replace")
        mode = stat.S_IMODE(path.stat().st_mode)
        if path.suffix in _RAW and "evidence" not in path.name and mode == 0o600:
            continue
        found += [f"{one.kind}: {path}" for one in SECRETS if one.secret in content]
    return found


def write_reports(run: Path, into: Path) -> dict[str, str]:
    """File → text of the report of a run in every format; `output.log` is what was printed."""
    call = [sys.executable, "-m", "perfgate", "report", str(run), "--to", str(into)]
    done = forked.run(call, cwd=run, env=inherited())
    (into / "output.log").write_text(f"{done.stdout}{done.stderr}")
    assert {made.file for made in report_format.values()} <= {one.name for one in into.iterdir()}
    for path in into.iterdir():
        path.chmod(0o644)  # for `leaks`, which takes a private .txt for a raw log
    return {one.name: one.read_text() for one in into.iterdir()}


class CommandLines:
    """All command lines of this machine while the block runs, searched for secrets."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.looked_at = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.is_set():
            for words in _command_lines():
                self.looked_at += 1
                # An option of a program is on that program's own command line.
                self.found |= {
                    f"{one.kind}: {words}"
                    for one in SECRETS
                    if one.secret in words and one.place != "option"
                }
            time.sleep(0.02)


def _command_lines() -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:  # it has ended
                continue
