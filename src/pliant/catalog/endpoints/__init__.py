"""Endpoints: what people deploy, which versions there are, and which of them runs."""
