"""A browser's side of RFC 8291: it has the keys of a subscription, and decrypts what is posted for it."""

import base64
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

#: Salt, record size and the length of the key id (RFC 8188, section 2.1), and the key id: a point that is not compressed.
HEADER, POINT, TAG = 21, 65, 16


class Undecryptable(Exception):
    """What is wrong with a message."""


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def point(key):
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derived(secret, salt, purpose, length):
    return HKDF(hashes.SHA256(), length, salt, purpose).derive(secret)


class BrowserKeys:
    """The key pair and the secret of one subscription."""

    def __init__(self):
        self._private = ec.generate_private_key(ec.SECP256R1())
        self.point, self.secret = point(self._private.public_key()), os.urandom(16)

    @property
    def told(self):
        """As a page is told: the member `keys` of PushSubscription.toJSON()."""
        return {"p256dh": encoded(self.point), "auth": encoded(self.secret)}

    def decrypt(self, body):
        """The plain text; `Undecryptable` for what a browser would drop (RFC 8291, section 4)."""
        if len(body) < HEADER + POINT + TAG + 1:
            raise Undecryptable("it is too short")
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        if length != POINT:
            raise Undecryptable(f"its key id has {length} bytes, and is no key")
        sender, sealed = body[HEADER:HEADER + POINT], body[HEADER + POINT:]
        if size < 18 or len(sealed) > size:
            raise Undecryptable("it has more than one record")
        try:
            public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        except ValueError:
            raise Undecryptable("its key is no point of P-256") from None
        shared = self._private.exchange(ec.ECDH(), public)
        secret = _derived(shared, self.secret, b"WebPush: info\0" + self.point + sender, 32)
        key = _derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derived(secret, salt, b"Content-Encoding: nonce\0", 12)
        try:
            text = AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\0")
        except InvalidTag:
            raise Undecryptable("its tag is wrong") from None
        if not text.endswith(b"\2"):
            raise Undecryptable("its last record does not say that it is the last")
        return text[:-1]
