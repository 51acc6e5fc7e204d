"""The link between the server and the agents on other machines: who is at its ends, and what they say."""
