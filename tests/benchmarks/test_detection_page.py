"""The page and its plots: made from the stored results, and in step with them."""

import re
from pathlib import Path

import pytest

from benchmarks.detection import __main__ as study
from benchmarks.detection import page, plots, results

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "detection.md"
PLOTS = ("operating", "rules", "series")


def test_the_page_is_what_the_stored_results_say() -> None:
    text = PAGE.read_text()
    assert page.render(text, results.FOLDER) == text


def test_the_committed_plots_are_text_without_a_date() -> None:
    for name in PLOTS:
        svg = (ROOT / "docs" / "explanation" / "detection" / f"{name}.svg").read_text()
        assert f"(detection/{name}.svg)" in PAGE.read_text()
        assert "<text" in svg
        assert not re.search(r"<dc:date>|\d{4}-\d{2}-\d{2}T", svg)
        assert len(svg) < 60_000


def test_plots_are_equal_for_equal_results(tmp_path: Path) -> None:
    for number in (1, 2):
        plots.draw(results.FOLDER, tmp_path / str(number))
    for name in PLOTS:
        first, second = ((tmp_path / str(n) / f"{name}.svg").read_bytes() for n in (1, 2))
        assert first == second


def test_a_page_with_an_unknown_table_or_one_twice_or_without_end_is_refused() -> None:
    text = PAGE.read_text()
    for wrong, name in (
        (text + "\n<!-- table: aims -->\n<!-- end -->\n", "aims"),
        (text + "\n<!-- table: luck -->\n<!-- end -->\n", "luck"),
        (text + "\n<!-- table: creep -->\n", "creep"),
    ):
        with pytest.raises(ValueError, match=name):
            page.render(wrong, results.FOLDER)


def test_every_table_is_printed(capsys) -> None:
    assert study.main(["--tables"]) == 0
    printed = capsys.readouterr().out
    assert all(f"## {name}\n" in printed for name in page.TABLES)


def test_results_are_stored_row_by_row(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": 0.123456789}, {"a": 2, "c": None}]
    results.save("some", rows, tmp_path)
    assert results.load("some", tmp_path) == [
        {"a": 1, "b": 0.1234568, "c": None},
        {"a": 2, "b": None, "c": None},
    ]
    assert len((tmp_path / "some.json").read_text().splitlines()) == 5


def test_the_study_runs_as_one_command(tmp_path: Path, monkeypatch, capsys) -> None:
    """With few trials, and without Otava and the series, whose stored results it keeps."""
    creeps = study.creep.of_small_steps
    monkeypatch.setattr(study.creep, "of_small_steps", lambda trials: creeps(1))
    shapes = (study.release_run.Shape(6, 3, 4.04),) * 2
    monkeypatch.setattr(study.release_run, "shapes_of", lambda _suite: shapes)
    monkeypatch.setattr(study, "_CHECKED_PER_CELL", 1)
    monkeypatch.setattr(study, "_CURVE_TRIALS", 50)
    stored = tmp_path / "results"
    stored.mkdir()
    for file in results.FOLDER.glob("*.json"):
        (stored / file.name).write_text(file.read_text())
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "detection.md").write_text(PAGE.read_text())
    where = ["--out", str(tmp_path / "docs"), "--results", str(stored)]
    few = ["--trials", "30", "--headline", "150", "--releases", "3"]
    assert study.main([*few, *where]) == 0
    assert results.load("aims", stored)[0]["trials"] == 150
    assert results.load("otava", stored) == results.load("otava")
    text = (tmp_path / "docs" / "detection.md").read_text()
    assert "30 trials a cell" in text
    assert (tmp_path / "docs" / "detection" / "series.svg").exists()
    assert "scenarios: " in capsys.readouterr().out


def test_the_series_are_judged_together_with_otava(capsys) -> None:
    with pytest.raises(SystemExit):
        study.main(["--series", "somewhere"])
    assert "--otava" in capsys.readouterr().err
