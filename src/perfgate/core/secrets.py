"""Secrets: by the name of a variable, option, header or field, and by the shapes that credentials
of common services have wherever they stand.
"""

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


_BASE64_LINE = r"[A-Za-z0-9+/=]{16,}"
_LAST_LINE = r"(?:(?:\s|\\n)*[A-Za-z0-9+/]{1,15}={1,2})?"

# Each stands at the beginning of a word.
_TOKENS = (
    r"gh[pousr]_[A-Za-z0-9_]{20,}",  # GitHub
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[\w.-]{16,}",  # GitLab
    r"hf_[A-Za-z0-9]{24,}",  # Hugging Face
    r"api_org_[A-Za-z0-9]{24,}",
    r"nvapi-[\w-]{16,}",  # NVIDIA
    r"(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AIPA|ANPA|ANVA|AROA)[A-Z0-9]{16}(?![A-Za-z0-9])",  # AWS
    r"(?<!-)sk-[\w-]{18,}",  # OpenAI, Anthropic
    r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}",  # Stripe
    r"AIza[\w-]{30,}",  # Google
    r"ya29\.[\w-]{16,}",
    r"GOCSPX-[\w-]{16,}",
    r"xox[a-z](?:\.[a-z]+)?-[\w-]{10,}",  # Slack
    r"xapp-[\w-]{10,}",
    r"hooks\.slack\.com/(?:services|workflows)/[\w/-]+",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[\w-]{40,}",
    r"dckr_[a-z]+_[\w-]{16,}",  # Docker
    r"do[opr]_v1_[a-f0-9]{32,}",  # DigitalOcean
    r"hv[bsr]\.[\w-]{20,}",  # HashiCorp Vault
    r"SG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
    r"webhook\.office\.com/webhookb2/[\w@/.-]+",  # Teams
    r"outlook\.office(?:365)?\.com/webhook/[\w@/.-]+",
)

SHAPES: tuple[re.Pattern[str], ...] = (
    # A private key: whole, without its end, or its end alone.
    re.compile(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----"
        r"(?:(?:(?!-----BEGIN).){0,20000}?-----END [A-Z0-9 ]{0,60}-----"
        rf"|(?:(?:\s|\\n)*{_BASE64_LINE})*{_LAST_LINE})",
        re.DOTALL,
    ),
    re.compile(
        rf"(?:^{_BASE64_LINE}[ \t]*\n){{1,120}}+(?:^[A-Za-z0-9+/=]{{1,15}}[ \t]*\n)?+"
        r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----",
        re.MULTILINE,
    ),
    re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_TOKENS)})"),
    # A JSON Web Token, from the beginning of its word, each of which is looked at once: from every
    # "eyJ" in it, a long word of them would take quadratic time.
    re.compile(r"(?<![\w-])(?>[\w-]*?eyJ)[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){1,3}"),
    # In headers; a digit tells them from words ("Bearer authentication").
    re.compile(r"(?<=\bbearer )(?=\S*\d)[\w.~+/-]{8,}=*", re.IGNORECASE),
    re.compile(r"(?<=\bbasic )(?=\S*[\d=])[\w+/]{8,}=*", re.IGNORECASE),
)
