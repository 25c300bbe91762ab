"""A certificate authority of the tests' own: its certificates are for servers and clients on this machine."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True, slots=True)
class Certificate:
    """Two files, as PEM."""

    certificate: Path
    key: Path


class Authority:
    """Keeps everything in a folder of its own. `certificate` is what those know who trust it."""

    def __init__(self, folder: Path) -> None:
        """Skips the test where there is no openssl."""
        if shutil.which("openssl") is None:
            pytest.skip("openssl makes the certificates")
        folder.mkdir(parents=True)
        self._folder = folder
        self._key = folder / "authority.key"
        self.certificate = folder / "authority.pem"
        _openssl(
            *("req", "-x509", *_NEW_KEY, "-days", "1", "-subj", "/CN=authority of a test"),
            *("-keyout", self._key, "-out", self.certificate),
        )

    def issue(self, name: str) -> Certificate:
        """For a host of that name or IPv4 address, or a client."""
        issued = Certificate(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        request, names = self._folder / f"{name}.csr", self._folder / f"{name}.names"
        kind = "IP" if name.replace(".", "").isdecimal() else "DNS"
        names.write_text(f"subjectAltName={kind}:{name}\n")
        _openssl("req", "-new", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", issued.key, "-out", request)
        _openssl(
            *("x509", "-req", "-in", request, "-days", "1", "-extfile", names, "-out", issued.certificate),
            *("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial"),
        )
        return issued


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
