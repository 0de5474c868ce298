"""The one reader of NVML: values or why there is none, and never an error of the driver's."""

import threading

import pynvml
import pytest
from fake_pynvml import FakeGpu, Refusal

from perfgate.machine import nvml
from perfgate.machine.nvml import Nvml, open_nvml, read_nvml
from perfgate.machine.reading import NotReadable, Unreadable, known


def test_a_reading_opens_the_library_and_lets_go_of_it(install) -> None:
    driver = install(FakeGpu(name="NVIDIA H200"))
    assert read_nvml(lambda opened: (driver.open, opened.gpu(0).name)) == (1, "NVIDIA H200")
    assert driver.open == 0


def test_an_error_of_the_reading_itself_is_raised_where_it_was_asked_for(install) -> None:
    driver = install(FakeGpu())

    def fail(opened: Nvml) -> None:
        raise LookupError("not of NVML")

    with pytest.raises(LookupError, match="not of NVML"):
        read_nvml(fail)
    assert driver.open == 0


@pytest.mark.parametrize("name", [1, "GPU-not-there"])
def test_a_gpu_that_is_not_there_answers_every_question_alike(install, name) -> None:
    install(FakeGpu())
    opened = open_nvml()
    assert isinstance(opened, Nvml)
    gpu = opened.gpu(name)
    answers = [gpu.name, gpu.pids, gpu.users, gpu.is_split, gpu.power_w, gpu.temperature_c]
    assert answers == [gpu.handle] * 6
    assert isinstance(gpu.handle, Unreadable)


def test_a_refusal_says_whether_there_is_no_such_thing(install) -> None:
    lost = Refusal(pynvml.NVML_ERROR_GPU_IS_LOST)
    install(
        FakeGpu("GPU-a", answers={"nvmlDeviceGetPowerUsage": Refusal()}),
        FakeGpu("GPU-b", answers={"nvmlDeviceGetPowerUsage": lost}),
    )
    opened = open_nvml()
    assert isinstance(opened, Nvml)
    facts = [opened.gpu(number).power_w for number in range(2)]
    assert facts == [Unreadable("Not Supported"), Unreadable("GPU is lost")]
    assert [fact.kind for fact in facts if isinstance(fact, Unreadable)] == ["unsupported", ""]


def test_a_function_that_the_bindings_lack(install) -> None:
    install(FakeGpu(), missing=["nvmlDeviceGetPowerUsage"])
    opened = open_nvml()
    assert isinstance(opened, Nvml)
    why = "this nvidia-ml-py has no nvmlDeviceGetPowerUsage"
    assert opened.gpu(0).power_w == Unreadable(why)


def test_an_error_that_is_none_of_nvmls_is_no_error_either(install) -> None:
    driver = install(FakeGpu())
    driver.nvmlDeviceGetName = lambda gpu: b"\xff".decode()
    opened = open_nvml()
    assert isinstance(opened, Nvml)
    name = opened.gpu(0).name
    assert isinstance(name, Unreadable)
    assert name.why.startswith("UnicodeDecodeError: ")


def test_a_driver_that_hangs_is_given_up(install, monkeypatch: pytest.MonkeyPatch) -> None:
    install(FakeGpu())
    monkeypatch.setattr(nvml, "PATIENCE_S", 0.05)
    over = threading.Event()
    fact = read_nvml(lambda opened: over.wait(20))
    over.set()
    assert isinstance(fact, Unreadable)
    assert (fact.kind, fact.why) == ("hangs", "the driver did not answer in 0 s")
    with pytest.raises(NotReadable, match="did not answer"):
        known(fact)
