"""Provider tokens: JWTs of the operator's key, ES256 and nothing else (RFC 7515, 7518; Apple: "Establishing a
token-based connection to APNs")."""

import base64
import binascii
import json

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from refusal import Refusal

#: Seconds.
LIFETIME, REST, AHEAD = 3600, 1200, 60


class Seen:
    """A token that passed once."""

    def __init__(self, team, key_id, issued_at, first_seen):
        self.team, self.key_id, self.issued_at, self.first_seen = team, key_id, issued_at, first_seen


class ProviderTokens:
    """`keys` has the public key of each (team id, key id), and the environment it is for, or None for both."""

    def __init__(self, keys):
        self.keys = keys
        self.seen = {}

    def check(self, authorization, latest, now, environment):
        """The token's `Seen`; `latest` is the one that this connection had before, or None."""
        if authorization is None:
            raise Refusal("MissingProviderToken", "no authorization header")
        seen = self.seen.get(authorization)
        if seen is None:
            seen = self._verified(authorization, now)
            self.seen[authorization] = seen
        if latest is not None and latest is not seen:
            self._check_change(latest, seen)
        if now - seen.issued_at > LIFETIME:
            # Not a violation by itself: a client's clock may be wrong, and a frozen client cannot know how late it is.
            raise Refusal("ExpiredProviderToken")
        wanted = self.keys[seen.team, seen.key_id][1]
        if wanted not in (None, environment):
            raise Refusal("BadEnvironmentKeyInToken")
        return seen

    def _check_change(self, latest, seen):
        if latest.team != seen.team:
            raise Refusal("InvalidProviderToken", "a second team on one connection")
        if latest.key_id != seen.key_id:
            raise Refusal("UnrelatedKeyIdInToken", "a second key on one connection")
        # Both clocks: neither tokens made ahead of time nor a client whose clock jumps come more often than that.
        if seen.first_seen - latest.first_seen < REST or abs(seen.issued_at - latest.issued_at) < REST:
            raise Refusal("TooManyProviderTokenUpdates", "a new provider token within 20 minutes of the last")

    def _verified(self, authorization, now):
        def wrong(what):
            return Refusal("InvalidProviderToken", f"provider token: {what}")

        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise wrong("not a bearer token")
        parts = token.split(".")
        if len(parts) != 3:
            raise wrong("not three parts")
        try:
            header, claims = (json.loads(_decoded(part)) for part in parts[:2])
            signature = _decoded(parts[2])
        except (ValueError, binascii.Error) as error:
            raise wrong(f"not base64url or not JSON: {error}") from None
        if not isinstance(header, dict) or not isinstance(claims, dict):
            raise wrong("not two objects")
        if header.get("alg") != "ES256":
            raise wrong(f"alg {header.get('alg')!r}")
        for name, value in ("kid", header.get("kid")), ("iss", claims.get("iss")):
            if not isinstance(value, str) or len(value) != 10:
                raise wrong(f"{name} is not 10 characters")
        issued_at = claims.get("iat")
        if type(issued_at) is not int:
            raise wrong(f"iat is not an integer: {issued_at!r}")
        known = self.keys.get((claims["iss"], header["kid"]))
        if known is None:
            # An operator's mistake, which a client has no way to see.
            raise Refusal("InvalidProviderToken")
        if len(signature) != 64:
            raise wrong(f"a signature of {len(signature)} bytes is not r and s")
        pair = utils.encode_dss_signature(int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))
        try:
            known[0].verify(pair, ".".join(parts[:2]).encode(), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            raise wrong("the signature does not fit") from None
        if issued_at > now + AHEAD:
            raise Refusal("InvalidProviderToken")
        return Seen(claims["iss"], header["kid"], issued_at, now)


def _decoded(part):
    if "=" in part or "+" in part or "/" in part:
        raise ValueError("not base64url without padding")
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
