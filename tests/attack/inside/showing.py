"""Leaves what a browser or a spreadsheet would run, and names that are headers; prints what moves a terminal."""

import os
from pathlib import Path

RESULT = Path(os.environ["RESULT_DIR"])
NAMES = ("page.html", "picture.svg", "a\r\nSet-Cookie: planted=1\r\n\r\n<script>.html", 'b"; filename="c.html')

for name in NAMES:
    (RESULT / name).write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script>")
print("\x1b]0;title\x07\x1b]52;c;cm0gLXJmIH4=\x07\x1b[2J\x9b31m<script>alert(1)</script>", flush=True)
