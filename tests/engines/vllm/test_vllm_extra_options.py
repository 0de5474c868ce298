"""`engine.extra_args`: given to the program, unless a field says it or it is perfgate's own."""

from typing import Any

import pytest
from tables import each
from vllm_scenarios import build, rendered, scenario

from perfgate.engines.refusal import ExtraOptionRefused
from perfgate.engines.vllm.engine import Vllm
from perfgate.scenarios.scenario import Mtp


@each(
    ("words", "settings", "owner"),
    [
        (("--max_num_seqs", 4), {}, "engine.settings.max_batch_size"),
        (("--max-num-se", 4), {}, "engine.settings.max_batch_size"),  # argparse would take it
        (("--max-num-seqs=4",), {}, "engine.settings.max_batch_size"),
        (("--no-enable-prefix-caching",), {}, "engine.settings.kv_cache_reuse"),
        (("--served-model-name", "m"), {}, "model.name"),
        (("--config", "f.yaml"), {}, "perfgate itself"),
        (("--headless",), {}, "one server"),
        (("--speculative-config", "{}"), {"mtp": Mtp(1)}, "engine.settings.mtp"),
        (("--kv-cache-memory-bytes", "1G"), {"kv_cache_fraction": 0.5}, "kv_cache_fraction"),
    ],
)
def test_what_a_field_says_or_perfgate_gives_is_refused(
    words: tuple[str | int, ...], settings: dict[str, Any], owner: str
) -> None:
    case = scenario(tp=8, extra_args={"vllm": words}, **settings)
    with pytest.raises(ExtraOptionRefused) as caught:
        Vllm().check(case, build("0.32.0"))
    assert owner in str(caught.value)
    assert [problem.path for problem in Vllm.refused_extras(case)] == [
        ("engine", "extra_args", "vllm", 0)
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("--speculative-config", '{"method":"ngram","num_speculative_tokens":3}'),
        ("--kv-cache-memory-bytes", "1G"),
    ],
)
def test_what_says_more_than_a_setting_is_taken_while_that_is_left_open(
    words: tuple[str, ...],
) -> None:
    case = scenario(tp=8, extra_args={"vllm": words})
    Vllm().check(case, build("0.32.0"))
    assert rendered(case, "0.32.0").endswith(" ".join(words))
