"""One file per noun of IBM's API."""
