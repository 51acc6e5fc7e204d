"""What people ask of control, each checked, written and then acted on: submit, change, stop, share, ask."""
