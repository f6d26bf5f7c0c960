"""The operator's service account: the file as the Firebase console makes it, and what Google knows of it."""

import json
import os

from certificates import private_pem, write_private
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key


class ServiceAccount:
    def __init__(self, folder, project, token_uri):
        self.path = f"{folder}/service-account.json"
        if not os.path.exists(self.path):
            key = private_pem(rsa.generate_private_key(public_exponent=65537, key_size=2048)).decode()
            self._write({
                "type": "service_account", "project_id": project, "private_key_id": "0123456789abcdef0123456789abcdef01234567",
                "private_key": key, "client_email": f"firebase-adminsdk@{project}.iam.gserviceaccount.com", "client_id": "1",
                "auth_uri": "https://accounts.google.com/o/oauth2/auth", "token_uri": token_uri})
        with open(self.path) as file:
            known = json.load(file)
        if known["token_uri"] != token_uri:
            self._write({**known, "token_uri": token_uri})
        self.email, self.key_id, self.token_uri = known["client_email"], known["private_key_id"], token_uri
        self.public_key = load_pem_private_key(known["private_key"].encode(), None).public_key()

    def _write(self, account):
        write_private(self.path, json.dumps(account, indent=2).encode())
