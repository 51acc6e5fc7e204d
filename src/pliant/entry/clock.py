"""The real clock, which every process hands to its rooms."""

import time


class SystemClock:
    """This machine's clock; implements `pliant.core.ports.Clock`."""

    def now(self) -> float:
        return time.time()
