"""A comparison as text, Markdown and JSON."""

import json
from pathlib import Path

from sides_made import measurement, run, throughputs

from perfgate.judging.comparison.comparison import Comparison, ComparisonOptions, compare
from perfgate.judging.comparison.sides import read_side
from perfgate.reports.comparison import SYNTHETIC, markdown, plain, text

SENTENCES = """\
output_throughput: -5.0 % (interval -6.3…-3.0 %), beyond the -2.0 % band; confirmed by the later \
starts alone; 2 fresh starts against 1 baseline run
note on output_throughput: the band is below the noise floor: 5 fresh starts resolve 2.9 %
note on output_throughput: no control: the machine is not excluded
note on output_throughput: noise: the family's prior; no history of this hardware yet
warning: 1 reported metric marked 'reported, a loss': of such losses nine in ten are real on average
only in A, not compared: e2el_mean_ms
only in B, not compared: duration_s
A: 1 fresh start, B: 2 fresh starts
"""
TEXT = f"""\
A (reference): FOLDER/a: run a of 2026-11-20, llama.cpp 1.3.0
B (new): FOLDER/b: run b of 2026-11-20, llama.cpp 1.3.0

REGRESSION: small-serve-c1

metric                          A   B   change          interval    band  verdict
output_throughput [tokens/s]  100  95   -5.0 %     -6.3 … -3.0 %  -2.0 %  REGRESSION
ttft_p99_ms [ms]               50  90  +80.0 %  +46.8 … +107.7 %       -  reported, a loss

{SENTENCES}
exit status 1: at least one regression"""
MARKDOWN = """\
# perfgate compare

- A (reference): `FOLDER/a`: run a of 2026-11-20, llama.cpp 1.3.0
- B (new): `FOLDER/b`: run b of 2026-11-20, llama.cpp 1.3.0

## REGRESSION: `small-serve-c1`

| metric | A | B | change | interval | band | verdict |
|---|--:|--:|--:|--:|--:|---|
| output_throughput [tokens/s] | 100 | 95 | -5.0 % | -6.3 … -3.0 % | -2.0 % | REGRESSION |
| ttft_p99_ms [ms] | 50 | 90 | +80.0 % | +46.8 … +107.7 % | - | reported, a loss |

""" + "".join(f"- {line}\n" for line in [*SENTENCES.splitlines()])


def made(tmp_path: Path, factor: float = 1.0, **changes: object) -> Comparison:
    old = {"output_throughput": 100.0, "ttft_p99_ms": 50.0, "e2el_mean_ms": 5.0}
    new = {"output_throughput": 95.0 * factor, "ttft_p99_ms": 90.0, "duration_s": 7.0}
    a = run(tmp_path / "a", [measurement(old)])
    b = run(tmp_path / "b", [measurement(new, start, **changes) for start in (1, 2)])
    return compare(read_side(a), read_side(b), ComparisonOptions())


def test_for_people(tmp_path: Path) -> None:
    result = made(tmp_path)
    assert text(result).replace(str(tmp_path), "FOLDER") == TEXT
    shown = markdown(result).replace(str(tmp_path), "FOLDER")
    assert shown == f"{MARKDOWN}\n- exit status 1: at least one regression"


def test_numbers_of_mock_programs_are_named_first(tmp_path: Path) -> None:
    result = made(tmp_path, 1.1, synthetic=True)
    assert text(result).startswith(f"{SYNTHETIC}\n")
    assert markdown(result).startswith(f"# perfgate compare\n\n**{SYNTHETIC}.**\n")
    assert (plain(result)["synthetic"], plain(result)["exit_status"]) == (True, 13)


def test_json_has_all_of_it(tmp_path: Path) -> None:
    values = json.loads(json.dumps(plain(made(tmp_path)), allow_nan=False))
    assert " ".join(values) == (
        "schema_version verdict exit_status synthetic sides probes only_in_a only_in_b warnings"
    )
    assert values["sides"]["a"]["path"] == str(tmp_path / "a")
    assert values["sides"]["b"]["kind"] == "run"
    (probe,) = values["probes"]
    assert probe["starts"] == {"a": 1, "b": 2}
    (judgement,), (change,) = probe["judgements"], probe["reported"]
    assert (judgement["metric"], judgement["verdict"]) == ("output_throughput", "REGRESSION")
    assert (change["metric"], change["warned"]) == ("ttft_p99_ms", True)
    assert (probe["only_in_a"], probe["only_in_b"]) == (["e2el_mean_ms"], ["duration_s"])


def test_nothing_in_common(tmp_path: Path) -> None:
    a = throughputs(tmp_path / "a", 100.0)
    b = throughputs(tmp_path / "b", 100.0, scenario="other")
    result = compare(read_side(a), read_side(b), ComparisonOptions())
    assert "only in A, not compared: small-serve-c1\nonly in B, not compared: other-c1\n" in text(
        result
    )
    assert plain(result)["verdict"] == "NOT_COMPARABLE"
