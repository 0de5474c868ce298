"""Blocks of load in turns, as their files tell of them; made: tests/suite/test_blocks_road.py."""

import json
from pathlib import Path
from typing import Any

import pytest

from perfgate.clients import blocks
from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement


def pair(new: float, reference: float, others: float = 0.0) -> dict[str, Any]:
    """A pair of blocks of 32 tokens, by their seconds."""
    given = {"new": new, "reference": reference}
    made = {side: {"seconds": one, "tokens": 32, "cpu_s": one / 2} for side, one in given.items()}
    return {"blocks": made, "others": others, "kept": others <= 0.15}


ALONE = {**pair(1.0, 1.0), "blocks": {"new": {"seconds": 1.0, "tokens": 32, "cpu_s": 0.5}}}


def parsed(folder: Path, *pairs: dict[str, Any], side: str = "new", asked: int = 2) -> Measurement:
    told = {"schema_version": 1, "side": side, "pairs": pairs}
    (folder / f"blocks_{side}.json").write_text(json.dumps(told))
    assert blocks.side_of(folder) == side
    return blocks.parse(folder, side, asked)


def test_a_side_has_the_mean_of_its_kept_blocks(tmp_path: Path) -> None:
    turned = pair(4.0, 8.0)  # the reference's block was made first
    turned["blocks"] = dict(reversed(turned["blocks"].items()))
    found = parsed(tmp_path, pair(1.0, 2.0), pair(9.0, 9.0, others=0.4), turned)
    assert found.metrics == {
        "output_throughput": pytest.approx(16.0),  # of 32 and 8 tokens/s
        "server_cpu_s_per_1k_tokens": pytest.approx(1000 * 2.5 / 64),
    }
    assert found.facts["blocks"] == {
        "pairs": 2,
        "thrown_away": 1,
        "others_used": 0.4,
        "noise_of_pair": 0.0,  # the new side is twice as fast in both
    }
    assert found.disturbed == ()


@pytest.mark.parametrize(("kept", "is_disturbed"), [(0, True), (1, True), (2, False)])
def test_a_start_with_too_few_pairs_is_disturbed(tmp_path, kept, is_disturbed) -> None:
    pairs = [pair(1.0, 1.0)] * kept + [pair(1.0, 1.0, others=0.5)] * (8 - kept)
    found = parsed(tmp_path, *pairs, asked=4)
    said = f"{8 - kept} of 8 pairs of blocks were thrown away: other programs used 50 % of the"
    assert [one.startswith(said) for one in found.disturbed] == [True] * is_disturbed
    assert bool(found.metrics) == bool(kept)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not JSON"),
        ('{"side": "new"}', "pairs"),
        ('{"side": "reference", "pairs": []}', "blocks of another side"),
        ('{"side": "new", "pairs": [{"blocks": {}, "others": 0, "kept": true}]}', "another side"),
        ('{"side": "new", "pairs": []}', "no pair of blocks"),
        (json.dumps({"side": "new", "pairs": [pair(0.0, 1.0)]}), "seconds"),
        (json.dumps({"side": "new", "pairs": [pair(-1.0, 1.0)]}), "seconds"),
        (json.dumps({"side": "new", "pairs": [ALONE]}), "no pair of blocks"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "blocks_new.json").write_text(text)
    with pytest.raises(InputError, match=told):
        blocks.parse(tmp_path, "new", 2)
