"""Tokens as an identity service would sign them: JWT, HS256, by hand, so that they can be wrong in every way."""

import base64
import hashlib
import hmac
import json
import time

SECRET = "end-to-end-tests-sign-with-this-secret"


def _encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(claims, secret=SECRET, header=None):
    """A token with exactly these claims."""
    header = {"alg": "HS256", "typ": "JWT"} if header is None else header
    text = ".".join(_encoded(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims))
    code = hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()
    return f"{text}.{_encoded(code)}"


def token(role="authenticated", lifetime=3600, **claims):
    now = int(time.time())
    return signed({"role": role, "iat": now, "exp": now + lifetime, **claims})
