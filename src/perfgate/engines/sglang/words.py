"""Words: what settings of SGLang can be called, in any release whose parser was run.

A word that none of them has is a typing error, found where a scenario file is read.
"""

from collections.abc import Mapping

from perfgate.engines.sglang.releases import all_releases
from perfgate.engines.sglang.releases.table import SERVE

_SETTINGS = ("kv_cache_dtype", "quantization", "attention_backend", "moe_backend")


def words() -> Mapping[str, frozenset[str]]:
    """Setting → what any release takes for it.

    Raises:
        InputError: a table of releases cannot be read.
    """
    tables = all_releases()
    return {
        setting: frozenset(word for table in tables for word in table.choices(SERVE, setting))
        for setting in _SETTINGS
    }
