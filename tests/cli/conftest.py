import pytest
from command_line import Perfgate


@pytest.fixture
def perfgate(capsys: pytest.CaptureFixture[str]) -> Perfgate:
    return Perfgate(capsys)
