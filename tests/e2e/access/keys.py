"""Makes certificates, keys and tokens for a server and its clients."""

import hashlib
import os
import pathlib
import subprocess


def _openssl(folder, *arguments):
    subprocess.run(['openssl', *arguments], cwd=folder, check=True, capture_output=True)


def replace(path, text):
    """Replaces a file atomically, by a rename."""
    new = pathlib.Path(f'{path}.new')
    new.write_text(text)
    os.replace(new, path)


class Keys:
    """Writes keys and tokens into `folder`.

    ca.pem is the CA. server.pem and server.key are for localhost. client.pem and client.key are for
    clients. tokens.textproto contains the tokens' digests.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        _openssl(folder, 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
                 '-nodes', '-days', '2', '-subj', '/CN=ca', '-keyout', 'ca.key', '-out', 'ca.pem')
        self.certify('server')
        self.certify('client')
        self._clients = {}
        self.write_tokens()

    def path(self, name):
        return str(self.folder / name)

    def certify(self, name, days=2):
        """Makes a certificate and key for `name`, replacing the current ones."""
        _openssl(self.folder, 'req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
                 '-nodes', '-subj', '/CN=localhost', '-keyout', 'next.key', '-out', 'next.csr')
        (self.folder / 'extensions').write_text('subjectAltName=DNS:localhost,IP:127.0.0.1\n')
        _openssl(self.folder, 'x509', '-req', '-in', 'next.csr', '-CA', 'ca.pem', '-CAkey',
                 'ca.key', '-days', str(days), '-extfile', 'extensions', '-out', 'next.pem')
        os.replace(self.folder / 'next.key', self.folder / f'{name}.key')
        os.replace(self.folder / 'next.pem', self.folder / f'{name}.pem')

    def give(self, name, token, scopes, more=''):
        """Gives a token to a client. `scopes` is a list like "INFER, READ"."""
        digest = hashlib.sha256(token.encode()).hexdigest()
        self._clients[name] = (f"client {{ name: '{name}' sha256: '{digest}' scope: [{scopes}] "
                               f'{more} }}\n')
        self.write_tokens()

    def take(self, name):
        """Removes a client's token, so that the server no longer accepts the client."""
        del self._clients[name]
        self.write_tokens()

    def write_tokens(self):
        replace(self.folder / 'tokens.textproto', ''.join(self._clients.values()))

    def flags(self):
        """Returns the flags of a server with TLS and tokens."""
        return (f'--tls_cert_file={self.path("server.pem")}',
                f'--tls_key_file={self.path("server.key")}',
                f'--token_file={self.path("tokens.textproto")}')
