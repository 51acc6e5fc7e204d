"""IBM's REST API for Watson Machine Learning Accelerator, as IBM's clients speak it, over Pliant's rooms.

One file per group of routes, and small files that translate: words, flags and arguments (`args`), frameworks, ids,
states, answers. Nothing inside Pliant imports this folder but the web application. What is supported, partly or not,
stands in docs/wmla.md.
"""
