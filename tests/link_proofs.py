"""What a task proves its job's token with, for tests that open links themselves."""

import secrets

from pliant.core.link_proof import NUM_BYTES, LinkProof


def new_proof(task_id: str, challenge: str = "") -> LinkProof:
    """Return what a new connection is proved with, with a server that has this challenge."""
    return LinkProof(task_id=task_id, challenge=challenge, nonce=secrets.token_hex(NUM_BYTES))
