"""Certificates as text, in PEM form: the first of several, or the only one that may stand there. It trusts none."""

import re
import ssl
from typing import Final

MAX_CERTIFICATE: Final = 16 << 10
"""Characters of one."""
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END CERTIFICATE-----")


def first_certificate(text: str) -> str:
    """Return the first certificate of a text, as PEM without what stands around it: a server's own, of a chain.

    Raises:
        ValueError: there is none, or it is too long.
    """
    found = _CERTIFICATE.search(text)
    if found is None:
        raise ValueError("there is no certificate in PEM form")
    if len(found[0]) > MAX_CERTIFICATE:
        raise ValueError(f"the certificate has {len(found[0])} characters; at most {MAX_CERTIFICATE} are taken")
    return found[0] + "\n"


def only_certificate(text: str) -> str:
    """Return the same of a text that somebody else has given: it must hold one certificate that can be read.

    Raises:
        ValueError: it does not.
    """
    if len(text) > MAX_CERTIFICATE:
        raise ValueError(f"the certificate has {len(text)} characters; at most {MAX_CERTIFICATE} are taken")
    if len(_CERTIFICATE.findall(text)) != 1:
        raise ValueError("there is not one certificate in PEM form, but none or several")
    certificate = first_certificate(text)
    load_certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)
    return certificate


def load_certificates(context: ssl.SSLContext, text: str) -> None:
    """Have a context believe who shows these certificates, or one that they have signed.

    Raises:
        ValueError: the text holds none, or one that cannot be read.
    """
    try:
        context.load_verify_locations(cadata=text)
    except ssl.SSLError as error:
        raise ValueError(f"the certificate cannot be read: {error}") from error
