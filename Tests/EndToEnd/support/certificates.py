"""A certificate authority of the tests' own: a root, an intermediate, and servers' certificates in PEM files."""

import datetime
import ipaddress
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

LOOPBACK = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]


def key_of(kind):
    if kind == "ec":
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(65537, {"rsa": 2048, "short": 1024}[kind])


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Pair:
    """A certificate and its key, in two files that may be written anew."""

    def __init__(self, folder, name="server"):
        self.certificate, self.key = f"{folder}/{name}.crt", f"{folder}/{name}.key"
        self.serial = self.expires = None

    def write(self, issued, certificate=True, key=True):
        if certificate:
            with open(self.certificate, "wb") as file:
                file.write(issued.chain)
        if key:
            with open(self.key, "wb") as file:
                file.write(issued.key)
        self.serial, self.expires = issued.serial, issued.expires
        return self


class Issued:
    def __init__(self, certificate, intermediate, key, password):
        self.chain = certificate.public_bytes(Encoding.PEM) + intermediate.public_bytes(Encoding.PEM)
        encryption = BestAvailableEncryption(password) if password else NoEncryption()
        self.key = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        self.serial = certificate.serial_number
        self.expires = int(certificate.not_valid_after_utc.timestamp())


class Authority:
    def __init__(self, folder):
        self.folder = str(folder)
        root_key, self._key = key_of("ec"), key_of("ec")
        root = self._sign("Roost's tests", root_key, None, root_key, is_authority=True)
        self._intermediate = self._sign("Roost's tests, below", self._key, root, root_key, is_authority=True)
        self.file = f"{self.folder}/ca.pem"
        with open(self.file, "wb") as file:
            file.write(root.public_bytes(Encoding.PEM))

    def _sign(self, name, key, issuer, issuer_key, days=(-1, 30), is_authority=False):
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder().subject_name(_name(name)).issuer_name(issuer.subject if issuer else _name(name))
            .public_key(key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(now + datetime.timedelta(days=days[0]))
            .not_valid_after(now + datetime.timedelta(days=days[1]))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False))
        if not is_authority:
            builder = builder.add_extension(x509.SubjectAlternativeName(LOOPBACK), False)
        return builder.sign(issuer_key, hashes.SHA256())

    def issue(self, kind="ec", days=(-1, 30), password=None):
        key = key_of(kind)
        certificate = self._sign("localhost", key, self._intermediate, self._key, days)
        return Issued(certificate, self._intermediate, key, password)

    def pair(self, name="server", **options):
        return Pair(self.folder, name).write(self.issue(**options))

    @property
    def trust(self):
        """For clients: the root and nothing else."""
        return ssl.create_default_context(cafile=self.file)
