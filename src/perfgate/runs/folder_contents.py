"""What a run folder holds: its files, and the kinds of its records, each with its meaning.

docs/reference/files.md is made from these tables.
"""

from typing import get_args

from perfgate.runs.record import AnyRecord

REFERENCES = "references"
CANDIDATES = "candidates"

FILES: dict[str, str] = {
    "run.json": "machine, versions, git state, arguments, listed variables; secrets masked",
    "records.jsonl": "the records, a line each as they finish; every report is made of them",
    "progress.jsonl": "what runs, waits and is made again, as events",
    "summary.md": "the run for people",
    "report.html": "the run as one page, with --html",
    "rehearsal/": "what the stand-ins of a rehearsal read",
    "run.lock": "held by the session that writes here",
    "workers.lock": "held by its workers; a run is resumed when they have ended",
    "<scenario>/": "the fresh starts of a scenario, one folder each",
    "references/": "copies of the baselines and waivers that the verdicts rest on",
    "candidates/": "copies of the candidates that the run recorded, with earlier sessions",
    "<scenario>.broken-<n>/": "what a killed session left of a group that was begun again",
    "<scenario>/start-<n>-<role>/": "a fresh start: the server's files, and one folder a probe",
    "server_cpu.json": "CPU seconds that the server used while a load client ran",
    "….sh": "the exact call of a program, to be run again by hand",
    "….out, ….err": "what the program printed",
    "….evidence.txt": "what was seen of a program that was ended for silence or for its time",
}
"""Path in the folder → what is there."""

RECORD_KINDS: dict[str, str] = {
    str(kind.__struct_config__.tag): " ".join(str(kind.__doc__).partition("\n\n")[0].split())
    for kind in get_args(AnyRecord)
}
"""Kind of a line of ``records.jsonl`` → what it says: the first sentence of its struct."""
