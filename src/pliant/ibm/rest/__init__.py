"""IBM's REST API for Watson Machine Learning Accelerator, as IBM's clients speak it, over Pliant's rooms.

`routes/` has one file per noun, `translate/` what turns IBM's words into Pliant's and back: arguments, frameworks, ids,
states, descriptions. `api.py` is what the process hands to the web application; nothing else imports this room.
docs/wmla.md says what is supported, partly or not.
"""
