"""What a training may claim of its results.

exact        bitwise the same for any number of tasks, and any history of them
statistical  the same mean gradient, but not the same bits; the claim says why
fast         chosen by the user: every task computes its whole share in one piece
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from pliant.core.job import Claim


@dataclass(slots=True)
class TrainingClaim:
    """The claim of one training. It is part of the training's state, and it only ever gets weaker."""

    level: Claim
    fingerprint: str
    """What the bits depend on besides script and data (`pliant.train.determinism`)."""
    reason: str = ""
    """Why the level is weaker than what was asked for."""

    def downgrade(self, reason: str) -> None:
        """Make an exact claim statistical; a claim that is weaker already keeps its first reason."""
        if self.level == "exact":
            self.level, self.reason = "statistical", reason

    @property
    def number(self) -> int:
        """A 62-bit number of the fingerprint: tasks compare it, and an int64 tensor can hold it."""
        return int.from_bytes(hashlib.sha256(self.fingerprint.encode()).digest()[:8], "big") >> 2

    def state_dict(self) -> dict[str, Any]:
        return {"claim": self.level, "fingerprint": self.fingerprint, "reason": self.reason}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from the claim of a state that another task, or an earlier training, has computed."""
        if self.level == "fast":
            return
        if state_dict["claim"] != "exact":
            reason = state_dict["reason"] or f"it was trained in {state_dict['claim']} mode before"
            self.level, self.reason = "statistical", reason
        elif state_dict["fingerprint"] != self.fingerprint:
            self.downgrade(f"it went on from [{state_dict['fingerprint']}] on [{self.fingerprint}]")
