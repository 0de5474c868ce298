"""What the documents tell people to type: found, marked, known to the programs, and tried."""

import io
import os
import re
import shlex
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, XDIST, inherited
from sizes import sized
from tables import each

from ci.maintenance import documented_lines
from ci.maintenance.documented_lines import (
    DocumentError,
    Line,
    Place,
    lines,
    main,
    mentions,
    names,
    read,
    spare_rehearsals,
)
from perfgate.cli import main as cli

ROOT = Path(__file__).parents[2]
SHOWN, MENTIONED, NAMED = read(ROOT)

# What `make setup` does not install.
MASKED = (
    *("hypothesis", "matplotlib", "pytest_cov", "pytest_timeout"),
    *("aiperf", "gguf", "lm_eval", "tokenizers", "transformers", "xllamacpp"),
)


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A copy of this checkout beside which nothing but the base set can be imported."""
    folder = tmp_path_factory.mktemp("stranger")
    root = folder / "checkout"
    private = shutil.ignore_patterns(".*", "__pycache__", "runs", "site.yaml")
    shutil.copytree(ROOT, root, ignore=private)
    masks = folder / "masks"
    masks.mkdir()
    for module in MASKED:
        (masks / f"{module}.py").write_text("raise ModuleNotFoundError('not for strangers')\n")
    programs = root / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "pytest", "perfgate"):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {Path(sys.executable).with_name(name)} "$@"\n')
        program.chmod(0o755)
    environment = {
        **inherited("COV", "PERFGATE_"),
        **ONLY_NEEDED_PLUGINS,
        "PYTEST_ADDOPTS": " ".join((*BENCHMARK, *XDIST)),
        "PERFGATE_LEASES": str(folder / "leases"),
        "PYTHONPATH": str(masks),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }
    return Place(root, environment)


@dataclass(frozen=True)
class Printed(Place):
    """perfgate prints its helps in this process: a process for each takes a minute."""

    def run(self, command: str) -> tuple[int, str]:
        program, *words = shlex.split(command)
        if program != "perfgate" or "--help" not in words:
            return super().run(command)
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said), pytest.raises(SystemExit) as ended:
            cli.main(words)
        return int(str(ended.value.code)), said.getvalue()


@pytest.fixture(scope="module")
def here(stranger: Place) -> Place:
    return Printed(stranger.root, stranger.environment)


# On each push .ci/run tries all of them, beside what `make setup` installs; here some.
TRIED = [line for line in SHOWN if line.tried and not line.rehearses]


class TestDocuments:
    @pytest.mark.slow
    @pytest.mark.nightly
    @pytest.mark.parametrize("line", sized(TRIED[::20], TRIED), ids=lambda line: line.place)
    def test_a_command_that_is_shown_ends_as_its_document_says(
        self, stranger: Place, line: Line
    ) -> None:
        assert stranger.fault(line) is None

    def test_each_command_and_option_exists(self, here: Place) -> None:
        assert [fault for line in (*SHOWN, *MENTIONED) if (fault := here.unknown(line))] == []

    def test_what_a_line_is_shown_to_print_is_recorded_where_it_is_not_run(
        self, here: Place
    ) -> None:
        assert [line for line in SHOWN if line.output and line.reason]
        assert [fault for line in SHOWN if (fault := here.unrecorded(line))] == []

    @pytest.mark.slow
    def test_each_name_exists(self, here: Place) -> None:
        assert {name.kind for name in NAMED} == {"test", "marker", "file", "variable", "field"}
        assert [fault for name in NAMED if (fault := here.missing(name))] == []

    def test_ci_makes_what_is_left_to_it(self) -> None:
        calls = re.findall(r"\bmake ([a-z-]+(?: [a-z]+-test)*)", (ROOT / ".ci" / "run").read_text())
        made = {target for call in calls for target in call.split()}
        left = [line.words for line in SHOWN if line.reason == "a step of .ci/run"]
        assert {program for program, *_ in left} == {"make"}
        assert {target for _, *targets in left for target in targets} <= made

    def test_the_trial_of_the_wheel_runs_what_is_left_to_it(self) -> None:
        script = (ROOT / "ci" / "maintenance" / "wheel.sh").read_text()
        lines = re.findall(r"^expect \d+ (.+)$", script, re.MULTILINE)
        run = [shlex.split(words.removesuffix(" -n 2")) for words in lines]
        left = [line.words for line in SHOWN if line.reason == "a step of ci/maintenance/wheel.sh"]
        assert len(left) >= 3
        assert [words for words in left if words not in run] == []

    def test_rehearsals_are_tried_in_ci(self) -> None:
        assert [line for line in SHOWN if line.rehearses and line.tried]
        assert "ci/maintenance/documented_lines.py" in (ROOT / ".ci" / "run").read_text()


class TestLines:
    def test_a_block_without_a_prompt_has_the_lines_that_name_a_program(self) -> None:
        text = (
            'Text.\n\n```\ncd /src\nperfgate doctor   # here\npytest -m "b200"\nperfgate: no\n```\n'
        )
        found = lines(text, "a.md")
        assert [line.place for line in found] == ["a.md:5", "a.md:6"]
        assert [line.words for line in found] == [["perfgate", "doctor"], ["pytest", "-m", "b200"]]

    def test_a_block_with_a_prompt_has_the_lines_behind_one(self) -> None:
        text = "```console\n$ perfgate plan \\\n    ID\nperfgate compare a b\n$ echo $?\n0\n```\n"
        assert [line.command for line in lines(text, "a.md")] == ["perfgate plan ID"]

    def test_what_stands_behind_a_line_with_a_prompt_is_its_output(self) -> None:
        text = "```console\n$ perfgate plan \\\n    ID\nprobe  metric\n\n…\n$ make test\n```\n"
        assert [line.output for line in lines(text, "a.md")] == [("probe  metric", "…"), ()]

    def test_an_indented_block_counts_and_an_indented_line_of_a_paragraph_does_not(self) -> None:
        text = "Text\n    perfgate plan\n\n    make test   # all\n\n- a\n  pytest\n"
        assert [line.words for line in lines(text, "a.md")] == [["make", "test"]]

    @each(
        "command, words",
        [
            (".venv/bin/perfgate doctor", ["perfgate", "doctor"]),
            (".venv/bin/python -m pytest -m local", ["pytest", "-m", "local"]),
            ("PERFGATE_HOSTS=a,b pytest --gate", ["pytest", "--gate"]),
        ],
    )
    def test_what_is_called_is_told_by_its_name(self, command: str, words: list[str]) -> None:
        assert Line("a.md:1", command).words == words

    def test_a_mark_is_about_the_next_block_alone(self) -> None:
        text = "<!-- status 13 -->\n```\npytest a\npytest b\n```\n\n```\npytest c\n```\n"
        assert [line.status for line in lines(text, "a.md")] == [13, 13, 0]

    def test_a_mark_may_name_the_beginning_of_its_lines_and_the_last_one_counts(self) -> None:
        text = (
            "<!-- status 1: pytest -->\n<!-- not run, needs GPUs: pytest b -->\n\n"
            "    pytest a\n    pytest b\n    perfgate plan\n"
        )
        found = [(line.status, line.reason) for line in lines(text, "a.md")]
        assert found == [(1, None), (0, "needs GPUs"), (0, None)]

    @each(
        "text, said",
        [
            ("<!-- not run, too dull -->\n```\npytest\n```\n", "a.md:1: unknown reason 'too dull'"),
            ("<!-- status: 13 -->\n```\npytest\n```\n", "a.md:1: not understood"),
            ("<!-- status 13: make -->\n```\npytest\n```\n", "a.md:1: no command in the next"),
            ("<!-- status 13 -->\nText.\n\n```\npytest\n```\n", "a.md:1: no block"),
            ("<!-- status 13 -->\n", "a.md:1: no block"),
            ("```\nmake\n```\n\nIt prints:\n\n```text\nA\n```\n", "a.md:8: show what"),
        ],
    )
    def test_a_mark_that_says_nothing_is_an_error(self, text: str, said: str) -> None:
        with pytest.raises(DocumentError, match=re.escape(said)):
            lines(text, "a.md")


class TestTried:
    @each(
        "line, tried",
        [
            (Line("a", "pytest -x  # all"), "pytest -x  # all"),
            (
                Line("a", 'A=b /opt/bin/pytest -m "b and c"  # all', 0, "needs GPUs"),
                "A=b pytest -m 'b and c' --collect-only -q",
            ),
            (Line("a", "perfgate doctor", 0, "needs GPUs"), None),
            (Line("a", "pytest --resume x", 0, "needs your files"), None),
        ],
    )
    def test_a_session_that_cannot_be_run_is_collected(self, line: Line, tried: str | None) -> None:
        assert line.tried == tried


class TestSpareRehearsals:
    def test_what_shows_nothing_new_is_collected_and_each_option_is_rehearsed(self) -> None:
        shown = [
            Line("a:1", "pytest -m b200 --rehearse", 13),
            Line("a:2", "pytest -m h200 --rehearse -n 2", 13),
            Line("a:3", "pytest -m b200 --rehearse --html", 13),
            Line("a:4", "pytest -m b200 --rehearse", 1),
            Line("a:5", "pytest -m b200 --rehearse", 0, "needs a cluster"),
            Line("a:6", "perfgate doctor"),
        ]
        found = spare_rehearsals(shown)
        assert [(line.place, line.status, line.reason) for line in found] == [
            ("a:1", 0, "shown by other rehearsals"),
            ("a:2", 13, None),
            ("a:3", 13, None),
            ("a:4", 1, None),
            ("a:5", 0, "needs a cluster"),
            ("a:6", 0, None),
        ]
        assert found[0].tried == "pytest -m b200 --rehearse --collect-only -q"


class TestHarmless:
    @each("command", ["pytest -m b200", "make format", "pip install .", "docker run i"])
    def test_nothing_else_is_run_for_want_of_a_mark(self, tmp_path: Path, command: str) -> None:
        (tmp_path / "CONTRIBUTING.md").touch()
        (tmp_path / "SECURITY.md").touch()
        (tmp_path / "README.md").write_text(f"    {command}\n")
        with pytest.raises(DocumentError, match=r"README\.md:1: measures or changes something"):
            read(tmp_path)


class TestMentions:
    def test_a_command_in_the_text_may_break_over_lines(self) -> None:
        text = "Say `pytest -m b200\n--budget 4h`, not `nothing` or\n\n    perfgate plan\n"
        assert mentions(text, "a.md") == [Line("a.md:1", "pytest -m b200 --budget 4h")]


class TestFaults:
    @each(
        "command, unknown",
        [
            ("pytest -m b200 --rehearsal", "--rehearsal"),
            ("perfgate plan -m b200 --budjet=4h", "--budjet=4h"),
            ("perfgate scenarios command ID --hear", "--hear"),
            ("perfgate foretell", "no such command"),
            ("make locale", "locale"),
        ],
    )
    def test_a_command_or_option_that_does_not_exist_is_found(
        self, here: Place, command: str, unknown: str
    ) -> None:
        fault = here.unknown(Line("a.md:1", command))
        assert fault is not None
        assert fault.startswith(f"a.md:1: {command}")
        assert fault.endswith(unknown)

    def test_an_unmarked_line_with_an_unknown_option_is_found(self, stranger: Place) -> None:
        (line,) = lines("```\nperfgate doctor --wich   # is refused\n```\n", "a.md")
        fault = stranger.fault(line)
        assert fault is not None
        assert "a.md:2: perfgate doctor --wich" in fault
        assert "ended with 2, not 0" in fault
        assert "unrecognized arguments: --wich" in fault

    @each(
        "shown, fault",
        [
            (
                [
                    "b200 9.5% of 20",
                    "…",
                    "exit status 13: /b/c.md, 12 s",
                    "now < 2 h of 20261122-160829-4711",
                ],
                None,
            ),
            (["…", "now 1 h of 20261122-160829-4711"], None),
            (
                ["b200 1% of 1", "…", "exit status 0: a/c.md, 1 s", "…"],
                "does not print: exit status 0",
            ),
            (["…", "exit status 13: a/d.md, 1 s", "…"], "does not print: exit status 13: a/d.md"),
            (["h200 1% of 1", "…"], "does not print: h200"),
            (["b200 1% for 1", "…"], "does not print: b200 1% for 1"),
            (["b200 1% of 1", "exit status 13: a/c.md, 1 s", "…"], "does not print: exit"),
            (
                ["…", "now 1 h of 20261122-160829-4711", "exit status 13: a/c.md, 1 s", "…"],
                "does not print: exit",
            ),
            (["b200 1% of 1", "two", "exit status 13: c.md, 1 s"], "does not show: now # h of #"),
        ],
    )
    def test_what_is_shown_must_be_printed_but_for_numbers_and_folders(
        self, tmp_path: Path, shown: list[str], fault: str | None
    ) -> None:
        printed = "b200  0.33% of 7\n\ntwo\nexit status 13: a/c.md, 4.5 s\n"
        printed += "now 3 h of runs/20261128-015711-23\n"
        (tmp_path / "out").write_text(printed)
        said = Place(tmp_path, os.environ).fault(Line("a.md:1", "cat out", output=tuple(shown)))
        assert (said or "a.md:1: cat out\nNone").splitlines()[1].startswith(str(fault))

    @each(
        "shown, recorded",
        [
            ("probe  metric  band  c4", True),
            ("c64  9.5 %  NO_BASELINE", True),
            ("probe  band  metric", False),
            ("probe  metric  bands", False),
            ("c4  1.0 %  REGRESSION", False),
        ],
    )
    def test_what_is_not_run_must_have_the_words_of_a_record(
        self, tmp_path: Path, shown: str, recorded: bool
    ) -> None:
        (tmp_path / "tests" / "data" / "cli").mkdir(parents=True)
        record = tmp_path / "tests" / "data" / "cli" / "a.txt"
        record.write_text("  probe  metric  finds  band\n  c1     2.0 %   NO_BASELINE\n")
        line = Line("a.md:1", "pytest", reason="needs GPUs", output=(shown, "…"))
        assert (Place(tmp_path, {}).unrecorded(line) is None) == recorded

    @each(
        "text, wrong",
        [
            ("Of `b200-r1-fp4-min-latency`, `gb200-r1-fp4-*`, `b200-bos-costs-gsm8k-…`.", []),
            ("See `b200-r1-fp4-max-latency`.", ["test: b200-r1-fp4-max-latency"]),
            ("See `h200-r7-*`.", ["test: h200-r7-*"]),
            ("Say `perfgate plan b200-r1`.", ["test: b200-r1"]),
            ("```\npytest -m 'b200 and not (b201 or smoke)'\n```\n", ["marker: b201"]),
            ("It writes `out/summary.md`.", []),
            ("It writes `out/total-" + "summary.md`.", ["file: total-" + "summary.md"]),
            ("Set `PERFGATE_MODELS`, `PERFGATE_PROGRAM_VLLM_SERVE`.", []),
            ("Set `PERFGATE_" + "MODULS`.", ["variable: PERFGATE_" + "MODULS"]),
            ("Set `gate.max_starts`, `engine.settings.mtp.layers`.", []),
            ("Set `gate.most_starts`.", ["field: most_starts"]),
            ("<!-- not perfgate's: launch-all.sh, b.sh -->\nCall `launch-all.sh`.", []),
        ],
    )
    def test_a_name_of_nothing_is_found(self, here: Place, text: str, wrong: list[str]) -> None:
        faults = [here.missing(name) for name in names(text, "a.md")]
        assert [fault for fault in faults if fault] == [
            f"a.md:{2 if text.startswith('`') else 1}: no such {one}" for one in wrong
        ]

    def test_all_faults_of_all_documents_are_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "docs" / "decisions").mkdir(parents=True)
        (tmp_path / "README.md").write_text("    perfgate --help\n    .venv/bin/perfgate doctor\n")
        (tmp_path / "CONTRIBUTING.md").write_text("    perfgate --help\n")
        (tmp_path / "SECURITY.md").touch()
        (tmp_path / "docs" / "decisions" / "1.md").write_text("Say `perfgate judge --what`.\n")
        monkeypatch.setattr(documented_lines, "ROOT", tmp_path)
        assert main() == 1
        told = capsys.readouterr().out
        assert "README.md:2: .venv/bin/perfgate doctor\nended with 127, not 0" in told
        assert "docs/decisions/1.md:1: perfgate judge --what: unknown: --what" in told
        assert "2 lines tried, 2 faults" in told
