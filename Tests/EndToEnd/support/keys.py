"""Keys of an identity service, by PyJWT and not by what the hub verifies with."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa


class Key:
    """A private key with a name."""

    def __init__(self, algorithm, kid):
        self.algorithm, self.kid = algorithm, kid
        if algorithm.startswith(("RS", "PS")):
            self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            self._way = jwt.algorithms.RSAAlgorithm
        elif algorithm.startswith("ES"):
            curve = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}[algorithm]
            self.private = ec.generate_private_key(curve())
            self._way = jwt.algorithms.ECAlgorithm
        else:
            self.private = ed25519.Ed25519PrivateKey.generate()
            self._way = jwt.algorithms.OKPAlgorithm

    @property
    def jwk(self):
        return {**json.loads(self._way.to_jwk(self.private.public_key())), "kid": self.kid, "use": "sig"}

    def token(self, lifetime=3600, role="authenticated", **claims):
        claims = {"role": role, "sub": "user-1", "exp": int(time.time()) + lifetime, **claims}
        return jwt.encode(claims, self.private, self.algorithm, headers={"kid": self.kid})


def key_set(*keys):
    return json.dumps({"keys": [key.jwk for key in keys]})


class KeyServer:
    """Serves a key set; `body` may be changed at any time, None answers with 500."""

    def __init__(self, body=None):
        self.body, self.requests = body, 0
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                owner.requests += 1
                self.send_response(200 if owner.body else 500)
                self.end_headers()
                self.wfile.write((owner.body or "").encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
