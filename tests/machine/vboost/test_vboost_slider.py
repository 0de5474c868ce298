"""Boost slider: what nvidia-smi says of it is read, or it is not touched."""

import pytest
from made_smi import Smi, smi

from perfgate.core.errors import RunError
from perfgate.machine.vboost import slider as boost_slider
from perfgate.machine.vboost.slider import levels, put_back, set_all

__all__ = ["smi"]


def test_levels(smi: Smi) -> None:
    assert levels() == {"0": (0, 4), "1": (2, 4)}
    assert levels(["1"]) == {"1": (2, 4)}


@pytest.mark.parametrize(
    "state",
    [
        {"levels": {}},
        {"levels": {"0": "N/A"}},
        {"levels": {"0": 0}, "name": "other"},
        {"levels": {"0": 0}, "list_fails_from": 1},
    ],
)
def test_what_cannot_be_read_is_said(smi: Smi, state: dict) -> None:
    smi.set(**state)
    with pytest.raises(RunError, match="cannot be read, so it could not be put back") as caught:
        levels()
    assert caught.value.failure == "unfit_machine"
    assert smi.calls == ["-l"]


def test_what_never_changed_is_not_set_again(smi: Smi) -> None:
    put_back({"0": 0, "1": 2})
    assert smi.calls == ["-l"]


def test_put_back_to_each_its_own(smi: Smi) -> None:
    set_all(4, ["0", "1"])
    put_back({"0": 1, "1": 3})
    assert smi.levels == {"0": 1, "1": 3}


def test_an_nvidia_smi_that_hangs_is_given_up(smi: Smi, monkeypatch: pytest.MonkeyPatch) -> None:
    smi.set(levels={"0": 0}, seconds=600)
    monkeypatch.setattr(boost_slider, "CALL_S", 1.0)
    with pytest.raises(RunError, match="could not be set") as caught:
        set_all(4, ["0"])
    assert caught.value.evidence == ("nvidia-smi did not answer in 1 s",)
