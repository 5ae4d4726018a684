"""An exact, bounded rate limiter in native code.

>>> from spillgate import Limiter
>>> limiter = Limiter("10/s burst 20")
>>> limiter.check("203.0.113.7").remaining
19
"""

from spillgate._spillgate import (
    AllDecision,
    Counts,
    Decision,
    Gate,
    Limiter,
    LimitState,
    ManualClock,
    Outcome,
    Policy,
    Reservation,
    Settled,
    __version__,
    check_all,
)
from spillgate.decorators import limit
from spillgate.errors import InvalidRequest, RateLimited, SpillgateError

__all__ = [
    "AllDecision",
    "Counts",
    "Decision",
    "Gate",
    "InvalidRequest",
    "LimitState",
    "Limiter",
    "ManualClock",
    "Outcome",
    "Policy",
    "RateLimited",
    "Reservation",
    "Settled",
    "SpillgateError",
    "__version__",
    "check_all",
    "limit",
]
