import sys

import pytest

from perfgate.core.errors import InputError
from perfgate.core.registry import Registry


class Animal:
    pass


@pytest.fixture
def animals(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Registry[Animal]:
    """A registry whose package has one module that registers `lion`."""
    package = tmp_path / "zoo_for_tests"
    package.mkdir()
    (package / "__init__.py").touch()
    text = "import test_registry as t\nt.ANIMALS('lion')(type('Lion', (t.Animal,), {}))\n"
    (package / "lion.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    registry: Registry[Animal] = Registry("animal", "zoo_for_tests")
    monkeypatch.setattr(sys.modules[__name__], "ANIMALS", registry, raising=False)
    monkeypatch.setitem(sys.modules, "test_registry", sys.modules[__name__])
    for name in ("zoo_for_tests", "zoo_for_tests.lion"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return registry


def test_modules_of_the_package_register_themselves(animals: Registry[Animal]) -> None:
    assert sorted(animals) == ["lion"]
    assert len(animals) == 1
    assert animals["lion"].__name__ == "Lion"
    assert vars(animals["lion"])["name"] == "lion"
    assert "lyon" not in animals
    assert animals("tiger")(Animal) is animals["tiger"] is Animal


def test_an_unknown_name_lists_the_known_and_two_of_one_name_are_a_bug(animals) -> None:
    animals("tiger")(Animal)
    with pytest.raises(ValueError, match="two animals named 'tiger'"):
        animals("tiger")(type("Other", (Animal,), {}))
    with pytest.raises(InputError) as caught:
        animals["lyon"]
    assert str(caught.value) == (
        "unknown animal\n  found: lyon\n  expected: one of lion, tiger\n  fix: did you mean lion?"
    )
    with pytest.raises(InputError, match="did you mean tiger"):
        animals["TI-GER"]
    with pytest.raises(InputError) as caught:
        animals["xylophone"]
    assert caught.value.hint is None


def test_a_module_that_cannot_be_imported_is_told_every_time(animals, tmp_path) -> None:
    (tmp_path / "zoo_for_tests" / "ant.py").write_text("import no_such_module_here\n")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_module_here"):
            list(animals)
    assert animals["lion"].__name__ == "Lion", "a name needs the module of that name alone"
