"""The certificate of a gateway while it runs: files that somebody replaces with newer ones, one after the other."""

import logging
import ssl
from dataclasses import dataclass, field
from pathlib import Path

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificatePair:
    """What the two files held, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


class CertificateFiles:
    """A certificate and its key.

    Args:
        certificate: a PEM file, with the certificates between it and its authority.
        key: a PEM file.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self.certificate = certificate
        self.key = key
        self._seen = self._look()
        self._problem = ""

    def read_newer(self, context: ssl.SSLContext) -> CertificatePair | None:
        """Return what is there if it is another one than before and can be used; `context` shows it from now on.

        Connections that are open keep theirs. Files that cannot be read, or do not belong together, since only one of
        them is new yet, are looked at again the next time.
        """
        seen = self._look()
        if seen is None or seen == self._seen:
            return None
        try:
            trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            trial.load_cert_chain(self.certificate, self.key)  # one that fails would leave `context` without a key
            pair = CertificatePair(certificate=self.certificate.read_bytes(), key=self.key.read_bytes())
            context.load_cert_chain(self.certificate, self.key)
        except OSError as error:  # `ssl.SSLError` is one
            if str(error) != self._problem:
                log.warning(
                    "the new certificate %s cannot be used: %s; the one before is shown", self.certificate, error
                )
            self._problem = str(error)
            return None
        self._seen, self._problem = seen, ""
        log.info("the certificate %s is a new one; it is shown from now on", self.certificate)
        return pair

    def _look(self) -> tuple[tuple[int, int, int], ...] | None:
        """Return by what one sees that a file is another one; None if one is not there."""
        try:
            found = [path.stat() for path in (self.certificate, self.key)]
        except OSError:
            return None
        return tuple((one.st_ino, one.st_mtime_ns, one.st_size) for one in found)
