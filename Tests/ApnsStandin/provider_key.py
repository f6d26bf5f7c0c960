"""The operator's key, as Apple's developer site hands it out: a .p8 file, an id, and the id of the team."""

import os

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from certificates import private_pem, write_private


def make(folder):
    """`key.p8` in a folder, unless it is there; its path."""
    path = f"{folder}/key.p8"
    if not os.path.exists(path):
        write_private(path, private_pem(ec.generate_private_key(ec.SECP256R1())))
    return path


def public(path):
    """The public key of a private or a public key in PEM."""
    with open(path, "rb") as file:
        data = file.read()
    if b"PUBLIC KEY" in data:
        return load_pem_public_key(data)
    return load_pem_private_key(data, None).public_key()
