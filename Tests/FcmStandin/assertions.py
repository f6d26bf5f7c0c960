"""Assertions that a client wants an access token for (Google, "Using OAuth 2.0 for Server to Server Applications"), by PyJWT."""

import urllib.parse

import jwt

GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
#: Seconds that an assertion may hold, and that clocks may differ by.
LONGEST, SKEW = 3600, 300
FRAME = ("Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the "
         "JWT claim.")


class NoToken(Exception):
    """RFC 6749, section 5.2. `violation` says what the client did wrong; None where it could not know better."""

    def __init__(self, error, description, violation=None):
        super().__init__(error)
        self.error, self.description, self.violation = error, description, violation


def check(request, account, now):
    """Raises NoToken for whatever is not a good request for an access token."""
    if request.method != "POST" or request.headers.get("content-type") != "application/x-www-form-urlencoded":
        raise NoToken("invalid_request", "Not a form", "a request for a token that is no form")
    form = urllib.parse.parse_qs(request.body.decode("latin-1"), strict_parsing=True)
    if set(form) != {"grant_type", "assertion"} or form["grant_type"] != [GRANT]:
        raise NoToken("unsupported_grant_type", "Invalid grant_type", f"form {sorted(form)}")
    [assertion] = form["assertion"]
    try:
        header = jwt.get_unverified_header(assertion)
        # Times are compared with this service's clock, which tests set.
        claims = jwt.decode(
            assertion, account.public_key, algorithms=["RS256"], audience=account.token_uri, issuer=account.email,
            options={"require": ["iss", "aud", "iat", "exp"], "verify_exp": False, "verify_iat": False})
    except jwt.InvalidSignatureError:
        raise NoToken("invalid_grant", "Invalid JWT Signature.", "a signature that is not the account's") from None
    except jwt.PyJWTError as error:
        raise NoToken("invalid_grant", "Invalid JWT.", f"{type(error).__name__}: {error}") from None
    if set(header) != {"alg", "typ", "kid"} or header["kid"] != account.key_id:
        raise NoToken("invalid_grant", "Invalid JWT header.", f"header {header}")
    if claims.get("scope") != SCOPE:
        raise NoToken("invalid_scope", "Invalid OAuth scope or ID token audience provided.", f"scope {claims.get('scope')!r}")
    if not all(isinstance(claims[name], int) for name in ("iat", "exp")) or not 0 < claims["exp"] - claims["iat"] <= LONGEST:
        raise NoToken("invalid_grant", FRAME, f"iat {claims['iat']}, exp {claims['exp']}")
    if claims["iat"] > now + SKEW or claims["exp"] < now - SKEW:
        raise NoToken("invalid_grant", FRAME)
