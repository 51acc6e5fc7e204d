"""Data sets: uploads, imports, and what people do with them."""
