"""Output streams that cannot fail: what is dropped is known, and no character is lost."""

import io
import os
import sys

import pytest

from perfgate.core.output_stream import OutputStream, standard_streams


@pytest.fixture
def number():
    """A descriptor for a stream, closed in the end."""
    made = os.open(os.devnull, os.O_WRONLY)
    yield made
    os.close(made)


def stream_to(target, number: int) -> OutputStream:
    """A stream to a file, or to what is open as that, by that descriptor."""
    opened = target if isinstance(target, int) else os.open(target, os.O_WRONLY)
    os.dup2(opened, number)
    os.close(opened)
    return OutputStream(open(number, "w", encoding="ascii", closefd=False), number)


def test_it_writes_through(tmp_path, number: int) -> None:
    (tmp_path / "file").touch()
    stream = stream_to(tmp_path / "file", number)
    print("8×B200", file=stream)
    stream.restore()
    assert (tmp_path / "file").read_text() == "8\\xd7B200\n"
    assert stream.failure is None
    assert stream.encoding == "ascii"
    assert stream.errors == "strict"


def test_a_full_target_is_known_and_everything_after_goes_nowhere(number: int) -> None:
    stream = stream_to("/dev/full", number)
    for _ in range(3):
        assert stream.write("x" * 100_000) == 100_000
        stream.flush()
    assert stream.failure is not None
    assert stream.failure.strerror == "No space left on device"
    os.write(number, b"what another writer of this process says")


def test_a_reader_that_left_is_no_failure(number: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = stream_to(writing, number)
    stream.write("x" * 100_000)
    stream.flush()
    assert stream.failure is None
    os.write(number, b"no SIGPIPE, no EPIPE")


def test_a_closed_stream_has_failed_once_there_was_something_to_say(number: int) -> None:
    stream = OutputStream(None, number)
    stream.flush()
    stream.write("")
    assert stream.failure is None
    assert not stream.isatty()
    stream.write("x")
    assert str(stream.failure) == "[Errno 9] it is closed"


def test_the_streams_of_the_process_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    before = sys.stderr
    with standard_streams() as (out_stream, _):
        print("here")
        assert out_stream.problem() == ""
    assert sys.stdout is out
    assert sys.stderr is before
    assert out.getvalue() == "here\n"

    monkeypatch.setattr(sys, "stdout", None)  # a closed one stays replaced
    with standard_streams() as (out_stream, _):
        print("into nothing")
        assert out_stream.problem() == "it is closed"
    sys.stdout.write("still into nothing")
