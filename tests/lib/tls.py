"""Certificates made for a test by the openssl program, and a strict client over TLS."""

import os
import socket
import ssl
import subprocess

from lib.bounds import Bound
from lib.resp import Connection


def openssl(*words, stdin=None):
    return subprocess.run(["openssl", *words], input=stdin, check=True, stdin=None if stdin else
                          subprocess.DEVNULL, capture_output=True).stdout


class Authority:
    """A signer in a directory; its files are NAME.crt and NAME.key (elliptic curves: quick to make)."""

    def __init__(self, directory, name="ca"):
        self.directory, self.name = directory, name
        self._key(name)
        openssl("req", "-x509", "-new", "-key", self.key(name), "-subj", "/CN=" + name, "-days",
                "30", "-out", self.cert(name), "-addext", "keyUsage=critical,keyCertSign")

    def cert(self, name):
        return os.path.join(self.directory, name + ".crt")

    def key(self, name):
        return os.path.join(self.directory, name + ".key")

    def _key(self, name, password=None):
        words = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out",
                 self.key(name)]
        if password:
            words += ["-aes-128-cbc", "-pass", "pass:" + password]
        openssl(*words)

    def make(self, name, common_name=None, san="DNS:localhost,IP:127.0.0.1", days=30, password=None,
             signer=None, is_authority=False):
        """A certificate and its key; the directory's path without the endings."""
        self._key(name, password)
        words = ["req", "-new", "-key", self.key(name), "-subj", "/CN=" + (common_name or name)]
        if password:
            words += ["-passin", "pass:" + password]
        request = openssl(*words)
        lines = ["basicConstraints=critical,CA:" + ("TRUE" if is_authority else "FALSE")]
        if san:
            lines.append("subjectAltName=" + san)
        extensions = os.path.join(self.directory, name + ".ext")
        with open(extensions, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        signer = signer or self.name
        openssl("x509", "-req", "-CA", self.cert(signer), "-CAkey", self.key(signer), "-set_serial",
                str(int.from_bytes(os.urandom(8), "big")), "-days", str(days), "-extfile", extensions,
                "-out", self.cert(name), stdin=request)
        return os.path.join(self.directory, name)

    def options(self, name="server", **more):
        """Options of a server that shows this certificate."""
        options = {"tls-cert-file": self.cert(name), "tls-key-file": self.key(name),
                   "tls-ca-cert-file": self.cert(self.name)}
        options.update({k.replace("_", "-"): v for k, v in more.items()})
        return options


def make_pki(directory):
    """An authority with a server's and a client's certificate, and others of less worth."""
    made = Authority(directory)
    made.make("server")
    made.make("client", "worker.example")
    made.make("expired", days=-1)
    elsewhere = os.path.join(directory, "other")
    os.mkdir(elsewhere)
    made.stranger = Authority(elsewhere, "stranger")
    made.stranger.make("client")
    return made


def context(ca=None, cert=None, key=None, version=None, check=True):
    """A client's SSLContext; version is an ssl.TLSVersion that it insists on."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not check:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if ca:
        made.load_verify_locations(ca)
    if cert:
        made.load_cert_chain(cert, key)
    if version:
        made.minimum_version = made.maximum_version = version
    return made


class TlsConnection(Connection):
    """lib.resp's client over TLS."""

    def __init__(self, address, tls_context, timeout_s=20.0, session=None, host="localhost"):
        super().__init__(address, timeout_s)
        try:
            self.sock = tls_context.wrap_socket(self.sock, server_hostname=host, session=session)
        except (OSError, ssl.SSLError):
            self.sock.close()
            raise

    def _readable(self, seconds):
        return self.sock.pending() or super()._readable(seconds)

    def receive(self, size, bound=None):
        bound = bound or Bound(self.timeout_s)
        while True:
            try:
                return super().receive(size, bound)
            except (ssl.SSLWantReadError, socket.timeout):
                continue  # a part of a record, or a session ticket

    def _send_some(self, view):
        try:
            return self.sock.send(view[:1 << 14])
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return 0
        except (BrokenPipeError, ConnectionResetError):
            return len(view)
