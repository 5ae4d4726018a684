"""What limiters raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spillgate._spillgate import InvalidRequest, SpillgateError

if TYPE_CHECKING:
    from spillgate._spillgate import Decision

__all__ = ["InvalidRequest", "RateLimited", "SpillgateError"]


class RateLimited(Exception):
    """A call is denied, or a wait would exceed its timeout."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        self.decision = decision

    def __str__(self) -> str:
        if self.decision.never:
            return "rate limit exceeded; waiting does not help"
        return f"rate limit exceeded; retry after {self.decision.retry_after:.3f} s"
