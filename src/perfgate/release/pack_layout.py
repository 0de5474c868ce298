"""Pack layout: the files of an evidence pack, by their roles. Pure.

A pack is an uncompressed tar file: of one input always the same bytes, whatever the machine and
its libraries. `manifest.json` lists every file but itself and those below `attestations/`, which
name the manifest by its SHA-256; so a signature covers everything.
"""

from dataclasses import dataclass
from typing import Literal, get_args

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
POLICY = "policy/release.yaml"
WAIVERS = "waivers.yaml"
SCENARIOS = "scenarios"
"""Folder: the files of the scenarios, claims and documented values, as the runs were made with."""
RUNS = "runs"
"""Folder: one folder a run, named by its id, with what the run folder holds."""
REPORT_PAGE = "report/report.html"
REPORT_JSON = "report/report.json"
CERTIFICATE = "certificate/certificate.md"
CERTIFICATE_PAGE = "certificate/certificate.html"
CHECK_JSON = "certificate/check.json"
REPRODUCE = "reproduce"
"""Folder: one script a required test, which runs it again."""
ATTESTATIONS = "attestations"
TEST_RESULT = "attestations/test-result.dsse.json"
SUMMARY = "attestations/svr.dsse.json"

Role = Literal[
    "policy",
    "scenarios",
    "baseline",
    "waivers",
    "noise",
    "run",
    "records",
    "raw",
    "script",
    "log",
    "report",
    "certificate",
    "reproduce",
]


@dataclass(frozen=True)
class PackedFile:
    """One line of the manifest.

    Attributes:
        path: inside the pack, with ``/``; no ``..``, no leading ``/``.
        sha256: of its bytes.
        size: in bytes.
        role: what it is there for.
    """

    path: str
    sha256: str
    size: int
    role: Role


@dataclass(frozen=True)
class Manifest:
    """What a pack holds (docs/reference/evidence_manifest.schema.json).

    Attributes:
        release: the policy's name of what is released.
        perfgate: version of perfgate that wrote the pack.
        rule: version of the gate's rule that the verdicts are by.
        ended: when the newest run ended, ISO 8601 UTC; also the time of every file in the pack.
        runs: ids of the runs, in the order of their start.
        files: sorted by path.
        schema_version: of this form.
    """

    release: str
    perfgate: str
    rule: str
    ended: str
    runs: tuple[str, ...]
    files: tuple[PackedFile, ...]
    schema_version: int = SCHEMA_VERSION


ROLES: tuple[Role, ...] = get_args(Role)
ATTESTATION_NAMES = (SUMMARY, TEST_RESULT)
"""Sorted. No other file may lie below `attestations/`."""
