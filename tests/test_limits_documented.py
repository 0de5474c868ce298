"""docs/reference/settings.md says the limits that the code has."""

import re
from pathlib import Path

from perfgate.campaign import serving
from perfgate.campaign.builds import words
from perfgate.clients import first_answers, logs
from perfgate.core.files import json_text, paths
from perfgate.core.programs import raw_log
from perfgate.evaluators import lm_eval_results
from perfgate.judging.comparison import numbers
from perfgate.release import attestation, keys, pack_archive
from perfgate.scenarios import yaml_document

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
LIMITS = {
    "YAML file": yaml_document.LARGEST_FILE,
    "values in a YAML file": yaml_document.MOST_VALUES,
    "levels in a YAML file": yaml_document.DEEPEST,
    "characters of a number in a YAML file": yaml_document.LONGEST_NUMBER,
    "errors of a YAML file": yaml_document.MOST_ERRORS,
    "characters of a value of `--inject`": words._LONGEST_VALUE,
    "`pyproject.toml`": paths._LARGEST,
    "baseline, anchor, `run.json`": json_text.LARGEST_OWN,
    "JSON that a program wrote": json_text.LARGEST_DOCUMENT,
    "a line of an lm_eval samples file, of a dataset": json_text.LARGEST_LINE,
    "questions of an lm_eval task": lm_eval_results._MOST_QUESTIONS,
    "levels of brackets in JSON": json_text.DEEPEST,
    "digits of a whole number in JSON": json_text.LONGEST_WHOLE_NUMBER,
    "a line of the standard input of `perfgate judge`": numbers.LARGEST_LINE,
    "a log": logs.LARGEST_LOG,
    "bytes of a log's line": raw_log.LONGEST_LINE,
    "part of a log that is searched": raw_log.MOST_SEARCHED,
    "part of a log where words of a report stand": logs.MOST_BLOCKS * logs.BLOCK,
    "an answer of the server": first_answers._LARGEST_ANSWER,
    "a server's list of models": serving._LARGEST_ANSWER,
    "an evidence pack": pack_archive.LARGEST_PACK,
    "files of an evidence pack": pack_archive.MOST_FILES,
    "`manifest.json` of an evidence pack": pack_archive.LARGEST_MANIFEST,
    "an attestation of an evidence pack": pack_archive.LARGEST_ATTESTATION,
    "a file of a key": keys.LARGEST_KEY,
    "signatures of a statement": attestation.MOST_SIGNATURES,
    "bytes of a path in an evidence pack": pack_archive.LONGEST_PATH,
    "bytes of a part of such a path": pack_archive.LONGEST_PART,
}


def test_each_limit_is_as_the_page_says() -> None:
    rows = re.findall(
        r"^\| (?P<what>[^|]+) \| (?P<limit>[\d,]+)(?: (\w+))? \|", PAGE.read_text(), re.M
    )
    told = {what: int(limit.replace(",", "")) * UNITS.get(unit, 1) for what, limit, unit in rows}
    assert len(told) == len(LIMITS)
    for name, limit in LIMITS.items():
        (found,) = {
            value for what, value in told.items() if re.match(re.escape(name) + r"(\W|$)", what)
        } or {None}
        assert found == limit, name
    assert f"more than {paths._MOST_DOTS} dots" in PAGE.read_text()
