"""Who posts: the header `authorization` of RFC 8292."""

import base64
import json
import re

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

HEADER = re.compile(r"vapid t=([\w-]+)\.([\w-]+)\.([\w-]+), ?k=([\w-]+)")
DAY = 86400


class Unknown(Exception):
    """Why a token is not taken."""


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Senders:
    """Checks tokens; the same one is checked once."""

    def __init__(self):
        self._checked = {}

    def check(self, header, origin, now):
        """The public key of whoever posts, in base64url."""
        match = HEADER.fullmatch(header or "")
        if not match:
            raise Unknown("authorization is not vapid t=…, k=…")
        if header not in self._checked:
            self._checked[header] = self._claims(*match.groups())
        claims = self._checked[header]
        if claims.get("aud") != origin:
            raise Unknown(f"aud is {claims.get('aud')}, not {origin}")
        if not isinstance(claims.get("exp"), int):
            raise Unknown("exp is no number")
        if not now < claims["exp"] <= now + DAY:
            raise Unknown("exp is over" if claims["exp"] <= now else "exp is more than 24 hours ahead")
        if not str(claims.get("sub", "")).startswith(("mailto:", "https://")):
            raise Unknown(f"sub is {claims.get('sub')!r}")
        return match[4]

    def _claims(self, head, claims, signature, key):
        if json.loads(decoded(head)) != {"typ": "JWT", "alg": "ES256"}:
            raise Unknown("not a JWT of ES256")
        raw = decoded(signature)
        if len(raw) != 64:
            raise Unknown(f"a signature of {len(raw)} bytes")
        try:
            public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(key))
            public.verify(encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")),
                          f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
        except (ValueError, InvalidSignature):
            raise Unknown("the signature does not fit the key") from None
        return json.loads(decoded(claims))
