"""Token shapes: what the credentials of common services look like, wherever they stand.

The prefixes are those that the services publish so that leaked credentials can be found. Lengths
are lower bounds somewhat below the published ones, since services lengthen their tokens.
"""

import re

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
