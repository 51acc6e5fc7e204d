"""Searches on the command line: begin, watch, change, stop, and what came of them."""
