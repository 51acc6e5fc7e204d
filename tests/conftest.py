"""For all tests: torch does not warn about connections that tests cut on purpose (read when it is imported)."""

import os

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
