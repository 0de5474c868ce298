"""Secrets by the name they go by: of variables, options, headers, fields."""

import re
from functools import lru_cache
from itertools import pairwise


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# A name is read word by word: HF_TOKEN, --api-key, clientSecret, x-api-key.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ALWAYS = _set(
    "secret secrets password passwords passwd passphrase passcode credential credentials creds "
    "jwt pat cookie cookies authorization bearer webhook otp totp sshpass"
)
# Long enough to mean the same inside a word that was written without separators: PGPASSWORD.
_INSIDE = re.compile(
    r"passw|passphrase|secret|credential|authorization|oauth"
    r"|(?:api|access|private|session|signing|encryption|ssh|auth|master)keys?$"
    r"|(?:auth|access|api|bearer|refresh|hf|github|gitlab|session|id|csrf|xsrf)tokens?$"
)
# What makes a name that of a place, or of another property, of the secret.
_ABOUT = _set("path file files dir folder sock socket helper url uri")
# Tokens that are text: ``time_per_output_token``, ``eos_token_id``, ``first_token_ms``.
_TEXT_TOKEN = _set(
    "per output first max min num eos bos pad stop eot unk sep cls special prompt draft accepted"
)
_COUNTED = _set(
    "id ids count counts limit len length latency size rate ms s us ns seconds throughput type "
    "budget probability logprob"
)
_TOKENS_OF = _set("api auth access refresh bearer github gitlab hf")
# Keys that open nothing: ``sort_key``, ``public_key``. Any other ``…_key`` is taken for a secret.
_OTHER_KEY = _set(
    "cache primary foreign public pub sort partition group index metric map kv value hash dict "
    "row hot any json lookup routing config attention field column dedup order by"
)
_KEY_OF = _set(
    "api access private secret session signing encryption master auth ssh deploy account"
)
# Passes that are turns, and switches: ``second_pass``, ``no_auth``.
_NO_PASS = _set("first second third single one two multi forward backward per num max no use")


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Whether a variable, option, header or field of this name is taken for a secret.

    A name that says where a secret is (``HF_TOKEN_PATH``), or counts tokens (``max_num_tokens``),
    is none.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or (words[-1] in _ABOUT and "webhook" not in words):
        return False
    if any(word in _ALWAYS or _INSIDE.search(word) for word in words):
        return True
    if not words[-1].isdigit() and words[-1].endswith("pw"):  # DBPW
        return True
    before, last = set(words[:-1]), words[-1]
    return (
        _is_token(words)
        or (last == "key" and bool(before - _OTHER_KEY) and not before & _OTHER_KEY)
        or any(one in _KEY_OF and two in ("key", "keys") for one, two in pairwise(words))
        or (last in ("pass", "pwd", "auth") and bool(before) and not before & _NO_PASS)
    )


def _is_token(words: list[str]) -> bool:
    """Whether the name is that of a token that lets somebody in, not of one that is text."""
    if "token" in words:
        return not _TEXT_TOKEN.intersection(words) and words[-1] not in _COUNTED
    return any(one in _TOKENS_OF and two == "tokens" for one, two in pairwise(words))
