"""A certificate authority of this process's own, and a certificate for this machine's loopback."""

import datetime
import ipaddress
import os
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

NAMES = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]


def private_pem(key):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def write_private(path, data):
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)


def _signed(subject, key, issuer, issuer_key, *extensions):
    now = datetime.datetime.utcnow()
    builder = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30)))
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, is_critical)
    return builder.sign(issuer_key, hashes.SHA256())


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def make(folder):
    """Writes `ca.pem`, `server.pem` (certificate and key) into a folder, unless they are there."""
    if os.path.exists(f"{folder}/server.pem"):
        return
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("APNs stand-in, of no worth to anybody else")
    ca = _signed(
        ca_name, ca_key, ca_name, ca_key, (x509.BasicConstraints(ca=True, path_length=0), True),
        (x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), False))
    server = _signed(
        _name("localhost"), key, ca_name, ca_key, (x509.SubjectAlternativeName(NAMES), False),
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), False))
    with open(f"{folder}/ca.pem", "wb") as file:
        file.write(ca.public_bytes(Encoding.PEM))
    # The key of the authority is forgotten: nothing else is ever signed with it.
    write_private(f"{folder}/server.pem", private_pem(key) + server.public_bytes(Encoding.PEM))


def context(folder):
    """TLS 1.2 and up, HTTP/2 or nothing, as APNs has it."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.set_alpn_protocols(["h2"])
    tls.load_cert_chain(f"{folder}/server.pem")
    return tls
