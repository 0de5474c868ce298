"""The note of a merge request: one, written or updated through GitLab's REST API.

A job token cannot write notes, so a token of its own is needed, and without one nothing is asked.
It goes to the server in a header, never to another one by a redirect, and into no message.
"""

import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from perfgate.core.redaction import redact

TOKEN = "PERFGATE_GITLAB_TOKEN"
MARK = "<!-- perfgate: this note is updated by later pipelines -->"
_LONGEST = 900_000  # characters; GitLab takes 1,000,000
_TIMEOUT_S = 20.0
_MOST_PAGES = 50
_PER_PAGE = 100
_LARGEST_ANSWER = 32 * 2**20
# What GitLab would obey in a text that comes from logs and branches: a quick action (/merge) at the
# beginning of a line, and a mention (@all). A zero-width space before, or in, it shows the same.
_QUICK_ACTION = re.compile(r"(?m)^(\s*)/")
_MENTION = re.compile(r"(?<![\w`])@(?=\w)")
_NOTHING_WIDE = "\u200b"


class NoteFailed(Exception):
    """GitLab did not take the note; the message is for a person and holds no secret."""


@dataclass(frozen=True)
class MergeRequest:
    """Where the note goes.

    Attributes:
        api: as `https://gitlab.example.org/api/v4`.
        project: number of the project of the merge request.
        number: of the merge request in its project.
        token: may write notes; shown nowhere.
    """

    api: str
    project: str
    number: str
    token: str = field(repr=False)

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "MergeRequest | str":
        """That of a job; why there is none, where there is none."""
        token = environment.get(TOKEN, "")
        number = environment.get("CI_MERGE_REQUEST_IID", "")
        if not number:
            return "the pipeline is of no merge request"
        if not token:
            return f"{TOKEN} is not set"
        api = environment.get("CI_API_V4_URL", "").rstrip("/")
        project = environment.get("CI_MERGE_REQUEST_PROJECT_ID", "")
        if not (number.isdecimal() and project.isdecimal() and token.isascii()):
            return "CI_MERGE_REQUEST_IID or CI_MERGE_REQUEST_PROJECT_ID is no number"
        parts = urllib.parse.urlsplit(api)
        loopback = parts.hostname in ("127.0.0.1", "::1", "localhost")
        if parts.scheme != "https" and not (parts.scheme == "http" and loopback):
            return "CI_API_V4_URL is not https, and a token is sent to nothing else"
        return cls(api, project, number, token)

    @property
    def notes(self) -> str:
        """Address of its notes."""
        return f"{self.api}/projects/{self.project}/merge_requests/{self.number}/notes"


def body_of(report: str | None, status: int, environment: Mapping[str, str]) -> str:
    """The text of the note: the report, and where the whole one is.

    Args:
        report: in Markdown; None: there is none.
        status: exit status of `perfgate report`.
        environment: of the job.
    """
    job = environment.get("CI_JOB_URL", "")
    known = re.fullmatch(r"https?://[\w.:/~-]{1,500}", job) is not None
    if report is None:
        text = (
            f"**perfgate: no report.** `perfgate report` ended with status {status}: a shard is "
            "missing or twice there, or its results cannot be read."
        )
        link = f"[What it said]({job})" if known else ""
    else:
        text = report
        link = f"[Whole report]({job}/artifacts/file/perfgate-report/report.html)" if known else ""
    harmless = _MENTION.sub(f"@{_NOTHING_WIDE}", _QUICK_ACTION.sub(rf"\1{_NOTHING_WIDE}/", text))
    if len(harmless) > _LONGEST:
        harmless = harmless[:_LONGEST] + "\n\n… cut: GitLab takes no longer note\n"
    return f"{MARK}\n{harmless}\n\n{link}\n" if link else f"{MARK}\n{harmless}\n"


def put_note(request: MergeRequest, body: str) -> str:
    """Write the note, or update the one that this token's user wrote before; what was done.

    Raises:
        NoteFailed: GitLab cannot be reached, or refuses.
    """
    me = _ask(request, "GET", f"{request.api}/user")
    author = me.get("id") if isinstance(me, dict) else None
    for page in range(1, _MOST_PAGES + 1):
        query = f"per_page={_PER_PAGE}&page={page}&sort=desc&order_by=created_at"
        notes = _ask(request, "GET", f"{request.notes}?{query}")
        if not isinstance(notes, list):
            raise NoteFailed("GitLab's list of notes is no list")
        for note in notes:
            if _is_ours(note, author):
                _ask(request, "PUT", f"{request.notes}/{int(note['id'])}", {"body": body})
                return "note updated"
        if len(notes) < _PER_PAGE:
            break
    _ask(request, "POST", request.notes, {"body": body})
    return "note written"


def _is_ours(note: Any, author: Any) -> bool:
    """By its author too: anybody can write the mark."""
    return (
        isinstance(note, dict)
        and author is not None
        and isinstance(note.get("author"), dict)
        and note["author"].get("id") == author
        and isinstance(note.get("id"), int)
        and str(note.get("body", "")).startswith(MARK)
    )


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: the token would go along."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none."""


def _ask(request: MergeRequest, method: str, url: str, content: Any = None) -> Any:
    call = urllib.request.Request(  # noqa: S310  # https, or http to this machine
        url,
        method=method,
        data=None if content is None else json.dumps(content).encode(),
        headers={"PRIVATE-TOKEN": request.token, "Content-Type": "application/json"},
    )
    where = f"{method} {url.partition('?')[0]}"
    try:
        with urllib.request.build_opener(_Stay).open(call, timeout=_TIMEOUT_S) as answer:
            return json.loads(answer.read(_LARGEST_ANSWER))
    except urllib.error.HTTPError as error:
        raise NoteFailed(f"{where}: status {error.code}") from None
    except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
        raise NoteFailed(f"{where}: {redact(type(error).__name__)}") from None
