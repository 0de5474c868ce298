"""Programs are asked with a limit of time, here or in the container that they are in."""

import sys
from dataclasses import dataclass

import pytest

from perfgate.asking import Answer, ask_here
from perfgate.errors import InputError
from perfgate.places import Places
from perfgate.programs import BENCHMARK_SERVING, LM_EVAL, TRTLLM_BENCH, TRTLLM_SERVE


@dataclass(frozen=True)
class Played:
    """A container that says what it was asked."""

    status: int = 0

    def ask(self, argv: tuple[str, ...], seconds: float) -> Answer:
        return Answer(self.status, f"inside: {' '.join(argv)}")


INSIDE = Places(inside=Played())


class TestHere:
    def test_output_and_status(self) -> None:
        code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
        answer = ask_here((sys.executable, "-c", code), 60)
        assert answer == Answer(3, "out\n", "err\n")
        assert (answer.is_good, answer.text) == (False, "out\nerr\n")
        assert answer.trouble == "it ended with status 3: err"

    def test_nothing_is_on_its_standard_input(self) -> None:
        code = "import sys; print(repr(sys.stdin.read()))"
        assert ask_here((sys.executable, "-c", code), 60).stdout == "''\n"

    def test_too_long(self) -> None:
        answer = ask_here((sys.executable, "-c", "import time; time.sleep(60)"), 0.5)
        assert answer.status is None
        assert answer.text == answer.trouble == f"no answer from {sys.executable} within 0.5 s"

    def test_no_such_program(self) -> None:
        answer = ask_here(("no-such-program-anywhere",), 60)
        assert answer.status is None
        assert "no-such-program-anywhere" in answer.why


class TestInside:
    def test_the_engines_programs_are_called_by_their_bare_names(self) -> None:
        assert INSIDE.find(TRTLLM_SERVE) == ("trtllm-serve",)
        assert INSIDE.find(BENCHMARK_SERVING)[:2] == ("python", "-m")

    def test_or_as_the_person_says_without_looking_here(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_BENCH", "/opt/x/trtllm-bench --log_level info")
        assert INSIDE.find(TRTLLM_BENCH) == ("/opt/x/trtllm-bench", "--log_level", "info")

    def test_a_setting_without_words_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_BENCH", " ")
        with pytest.raises(InputError, match="PERFGATE_PROGRAM_TRTLLM_BENCH"):
            INSIDE.find(TRTLLM_BENCH)

    def test_others_are_found_here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PERFGATE_PROGRAM_LM_EVAL", sys.executable)
        assert INSIDE.find(LM_EVAL) == (sys.executable,)

    def test_only_what_comes_with_the_engine_is_asked_there(self) -> None:
        assert INSIDE.ask(("echo", "a"), 60, of_engine=True).text == "inside: echo a"
        assert INSIDE.ask(("echo", "a"), 60).text == "a\n"
        assert Places().ask(("echo", "a"), 60, of_engine=True).text == "a\n"
