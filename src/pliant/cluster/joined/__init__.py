"""The server's side of machines that have joined: adapters, who was heard when, where their agents connect."""
