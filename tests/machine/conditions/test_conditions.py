"""Conditions as JSON."""

import json

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.machine.conditions.conditions import (
    Conditions,
    CpuConditions,
    GpuConditions,
    conditions_of,
    not_watched,
)


@pytest.mark.parametrize(
    "conditions",
    [
        Conditions(
            1.5,
            2,
            CpuConditions(16, None, 0.25, mhz_top=3500.0),
            (GpuConditions(0, "a", "b", slowdown={"x": 0.5}, strangers=("pid 1",)),),
            ("a note",),
        ),
        not_watched("the driver hangs"),
    ],
)
def test_what_a_node_told_is_read_as_it_was(conditions: Conditions) -> None:
    assert conditions_of(json.loads(json.dumps(conditions.plain()))) == conditions


@each("plain", [{}, [], 3, None, {"seconds": 1.0}, {**not_watched("").plain(), "cpu": {"x": 1}}])
def test_what_is_none_is_refused(plain: object) -> None:
    with pytest.raises(InputError, match="not the plain form of Conditions"):
        conditions_of(plain)


def test_plain_values_by_name() -> None:
    conditions = Conditions(
        61.23456,
        62,
        CpuConditions(16, 0.0312345, 0.0, 3100.0, 3450.0, 3500.0),
        (
            GpuConditions(
                0, "NVIDIA B200", "GPU-0", 1950.0, 1965.0, 951.5, 66.0,
                {"sw_power_cap": 2 / 3}, 0.0, ("pid 4711 (python)",),
            ),
        ),
        ("GPU 0: power not readable: Not Supported",),
    )  # fmt: skip
    plain = conditions.plain()
    cpu, (gpu,) = plain.pop("cpu"), plain.pop("gpus")
    notes = ["GPU 0: power not readable: Not Supported"]
    assert plain == {"seconds": 61.2346, "samples": 62, "notes": notes}
    assert cpu == {
        "cores": 16, "others_share": 0.0312, "steal_share": 0.0,
        "mhz_low": 3100.0, "mhz_median": 3450.0, "mhz_top": 3500.0,
    }  # fmt: skip
    assert gpu == {
        "index": 0, "name": "NVIDIA B200", "uuid": "GPU-0",
        "sm_mhz_low": 1950.0, "sm_mhz_median": 1965.0, "power_w_mean": 951.5,
        "temperature_c_top": 66.0, "slowdown": {"sw_power_cap": 0.6667}, "slowed_share": 0.0,
        "strangers": ["pid 4711 (python)"],
    }  # fmt: skip
    assert json.loads(json.dumps(conditions.plain(), allow_nan=False)) == conditions.plain()
