"""What a run folder holds: its files, and the kinds of its records, each with its meaning.

docs/reference/files.md is made from these tables.
"""

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
    "selected": "the tests of the run, with scenario and probe of each",
    "scenario": "a scenario that a test is about: title, engine, model, hardware, document",
    "shard": "which part of a selection the run is",
    "rehearsal": "stand-ins played the programs, by which recorded pages",
    "preflight": "what was looked at in a place before anything was started there",
    "measurement": "what one probe gave on one fresh start",
    "verdict": "what the gate says of one test, with all of its numbers",
    "skipped": "a test without a verdict, and why",
    "unasked": "an installed build that could not be asked which options it has, and why",
    "moved_defaults": "defaults of the installed build that a document states otherwise",
    "group": "a scenario whose tests are done: starts made, planned and saved, and the time taken",
    "set_aside": "a folder of starts that was left half done and moved out of the way",
    "resumed": "a session that went on with the run: what it keeps, and what it makes again",
    "noise_kept": "files of the noise that the run showed",
    "candidate": "a baseline that the run recorded for a person to promote (--record)",
    "not_recorded": "what was measured and became no candidate, and why",
    "waiver_fault": "a waiver that does not hold",
    "ended": "the exit status and what it was made of; a run without it did not end",
}
"""Kind of a line of ``records.jsonl`` → what it says."""
