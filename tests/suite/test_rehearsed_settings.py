"""Rehearsed settings: a server that does not run with what its line says, down to every report."""

from pathlib import Path

import pytest
from rehearsing import rehearse

pytestmark = pytest.mark.slow

LINE = (
    "not in force, as the scenario says: attention_dp: asked True, in force False: "
    "SGLang 0.5.2 to 0.5.18 switch --enable-dp-attention off"
)


def test_dp_attention_is_in_force_with_a_size_and_without_one_every_report_says_that_it_was_not(
    tmp_path: Path,
) -> None:
    lab = "h200-r1-0528-lab-sglang"
    name, sized = f"{lab}-dp-sharegpt", f"{lab}-dp8-sharegpt"
    xml = tmp_path / "junit.xml"
    done = rehearse(tmp_path, "-k", f"{name} or {sized}", "--junitxml", str(xml))
    expected = {f"{name}-c1000": "PASS", f"{sized}-c1000": "NO_BASELINE"}
    assert done.verdicts == expected, done.output[-3000:]
    verdicts = {line["scenario"]: line["settings"] for line in done.records("verdict")}
    assert verdicts[name][0].startswith(LINE)
    output = " ".join(done.output.split())
    assert f"setting: {name}: {LINE}" in output
    assert f"- setting: {LINE}" in (done.folder / "summary.md").read_text()
    assert f'<property name="setting" value="{LINE}' in xml.read_text()
    assert not [one for one in verdicts[sized] if "attention_dp" in one]
    assert output.count("attention_dp") == output.count(LINE)
    (measured,) = [one for one in done.records("measurement") if one["scenario"] == sized]
    assert measured["facts"]["settings_in_force"]["attention_dp"] is True
