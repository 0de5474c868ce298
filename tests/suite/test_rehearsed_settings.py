"""Rehearsed settings: a server that does not run with what its line says, down to every report."""

from pathlib import Path

import pytest
from test_rehearsal import rehearse

pytestmark = pytest.mark.slow

LINE = (
    "not in force, as the scenario says: attention_dp: asked True, in force False: "
    "SGLang 0.5.2 to 0.5.18 switch --enable-dp-attention off"
)


def test_a_documented_result_says_that_dp_attention_was_not_in_force(tmp_path: Path) -> None:
    name = "h200-r1-0528-lab-sglang-dp-sharegpt"
    xml = tmp_path / "junit.xml"
    done = rehearse(tmp_path, "-k", name, "--junitxml", str(xml), traced=False)
    assert done.verdicts == {f"{name}-c1000": "PASS"}, done.output[-3000:]
    (verdict,) = done.records("verdict")
    assert verdict["settings"][0].startswith(LINE)
    assert f"setting: {name}: {LINE}" in done.output
    assert f"- setting: {LINE}" in (done.folder / "summary.md").read_text()
    assert f'<property name="setting" value="{LINE}' in xml.read_text()


def test_with_a_size_it_is_in_force_and_nothing_is_said_of_it(tmp_path: Path) -> None:
    name = "h200-r1-0528-lab-sglang-dp8-sharegpt"
    done = rehearse(tmp_path, "-k", name, traced=False)
    assert done.verdicts == {f"{name}-c1000": "NO_BASELINE"}, done.output[-3000:]
    (verdict,) = done.records("verdict")
    assert not [one for one in verdict["settings"] if "attention_dp" in one]
    assert "attention_dp" not in done.output
    (measured,) = done.records("measurement")
    assert measured["facts"]["settings_in_force"]["attention_dp"] is True
