"""The questions of perfgate_arithmetic: generated, distinct, right, and never shown beforehand."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import yaml
from tables import each

FOLDER = Path(__file__).parents[2] / "fixtures" / "lm_eval_tasks" / "perfgate_arithmetic"


def rows(split: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (FOLDER / f"{split}.jsonl").read_text().splitlines()]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("arithmetic_generator", FOLDER / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def kernel(row: dict[str, str], made: ModuleType) -> str:
    """Wording and numbers, whoever has whatever things."""
    text = row["question"]
    for name in made.NAMES:
        text = re.sub(rf"\b{name}\b", "NAME", text)
    for things in made.THINGS:
        text = re.sub(rf"\b{things}\b", "THINGS", text)
    return text


TEST, FEWSHOT = rows("test"), rows("fewshot")


def test_the_files_are_those_of_the_generator(tmp_path: Path) -> None:
    copy = tmp_path / "generate.py"
    copy.write_bytes((FOLDER / "generate.py").read_bytes())
    subprocess.run([sys.executable, str(copy)], check=True)
    for name in ("test.jsonl", "fewshot.jsonl"):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()
    (tmp_path / "test.jsonl").write_text((FOLDER / "test.jsonl").read_text()[1:])
    changed = subprocess.run(
        [sys.executable, str(copy), "--check"], check=False, capture_output=True, text=True
    )
    assert changed.returncode == 1
    assert "test.jsonl is not what generate.py writes" in changed.stderr


def test_all_questions_differ_in_wording_or_numbers() -> None:
    made = generator()
    assert len({kernel(row, made) for row in TEST + FEWSHOT}) == 200 + 8


@each("row", TEST + FEWSHOT, ids=lambda row: row["question"])
def test_the_answer_is_right(row: dict[str, str]) -> None:
    """Worked out from the question alone, not by the generator's code."""
    numbers = [int(number) for number in re.findall(r"\d+", row["question"])]
    losing = re.search(r"break|gives away", row["question"])
    expected = numbers[0] - numbers[1] if losing else sum(numbers)
    assert row["answer"].endswith(f" = {expected}")
    assert [int(number) for number in re.findall(r"\d+", row["answer"])] == [*numbers, expected]
    assert expected > 0


def test_the_same_examples_are_shown_with_every_question() -> None:
    text = (FOLDER / "perfgate_arithmetic.yaml").read_text().replace("!function ", "")
    task = yaml.safe_load(text)
    assert task["fewshot_config"]["sampler"] == "first_n"
    assert task["fewshot_split"] == "fewshot" != task["test_split"]
