"""Sizes in bytes as people read them; here, because an agent and the command line show the same."""


def size(num_bytes: int) -> str:
    """Return a size in bytes, KiB, MiB or GiB, with a decimal below a hundred: `1 byte`, `2.0 KiB`, `150 MiB`."""
    if num_bytes < 1024:
        return f"{num_bytes} byte" if num_bytes == 1 else f"{num_bytes} bytes"
    value, unit = num_bytes / 1024, "KiB"
    for larger in ("MiB", "GiB"):
        if value >= 1024:
            value, unit = value / 1024, larger
    return f"{value:.1f} {unit}" if value < 100 else f"{value:.0f} {unit}"
