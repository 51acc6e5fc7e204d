"""For clients of servers without TLS: `httpx.Client(..., verify=NO_TLS)`.

Otherwise each of them reads all certificates that others trust, which takes longer than most requests.
"""

import ssl
from typing import Final

NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Refuses every certificate."""
