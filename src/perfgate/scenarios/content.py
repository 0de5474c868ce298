"""Content: what shapes a measurement, as one short hash; baselines are found by it."""

import hashlib
import json

from perfgate.core.plain import to_plain


def content_hash(*parts: object) -> str:
    """16 hex digits of the SHA-256 of `parts`, which are dataclasses and plain values.

    What is not set is left out, so that a field added later keeps the hashes of stored baselines.

    Raises:
        TypeError: a part has a value that JSON does not know.
    """
    plain = to_plain(parts, leave_out_none=True)
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
