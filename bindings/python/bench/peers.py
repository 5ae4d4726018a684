"""Limiters that are asked the same: may this key make one more call? Each builds one for a limit per
minute, and returns the function that is called with a key."""

from importlib.metadata import version


def spillgate_allow(limit):
    import spillgate

    return spillgate.Limiter(f"{limit}/min").allow


def spillgate_check(limit):
    import spillgate

    return spillgate.Limiter(f"{limit}/min").check


def limits_fixed(limit, storage=None):
    import limits

    strategy = limits.strategies.FixedWindowRateLimiter(storage or limits.storage.MemoryStorage())
    item = limits.RateLimitItemPerMinute(limit)
    return lambda key: strategy.hit(item, key)


def limits_moving(limit):
    import limits

    strategy = limits.strategies.MovingWindowRateLimiter(limits.storage.MemoryStorage())
    item = limits.RateLimitItemPerMinute(limit)
    return lambda key: strategy.hit(item, key)


def limits_on_spillgate(limit):
    import limits

    import spillgate.limits  # noqa: F401: registers the storage

    return limits_fixed(limit, limits.storage.storage_from_string("spillgate://"))


def throttled_py(limit):
    from throttled import Throttled, rate_limiter, store

    throttle = Throttled(
        using="token_bucket",
        quota=rate_limiter.per_min(limit, burst=limit),
        store=store.MemoryStore(options={"MAX_SIZE": 1_000_000}),
    )
    return lambda key: not throttle.limit(key).limited


def pyrate_limiter(limit):
    from pyrate_limiter import BucketFactory, Duration, InMemoryBucket, Limiter, Rate, RateItem

    class PerKey(BucketFactory):
        def __init__(self):
            self.buckets = {}
            self.first = InMemoryBucket([Rate(limit, Duration.MINUTE)])

        def wrap_item(self, name, weight=1):
            return RateItem(name, self.first.now(), weight=weight)

        def get(self, item):
            bucket = self.buckets.get(item.name)
            if bucket is None:
                bucket = self.buckets[item.name] = InMemoryBucket([Rate(limit, Duration.MINUTE)])
            return bucket

    limiter = Limiter(PerKey())
    return lambda key: limiter.try_acquire(key, blocking=False)


def token_bucket(limit):
    import token_bucket

    # Whole tokens per second; the bucket holds a minute's.
    return token_bucket.Limiter(max(limit // 60, 1e-9), limit, token_bucket.MemoryStorage()).consume


def rust_py_rate_limit(limit):
    from rust_py_rate_limit import RateLimiter

    return RateLimiter(limit=limit, window_seconds=60).allow


#: Name, what builds it, the package, and whether it is written in Python.
PEERS = [
    ("spillgate allow", spillgate_allow, "spillgate", False),
    ("spillgate check", spillgate_check, "spillgate", False),
    ("limits, fixed window", limits_fixed, "limits", True),
    ("limits, moving window", limits_moving, "limits", True),
    ("limits on spillgate://", limits_on_spillgate, "spillgate", False),
    ("throttled-py", throttled_py, "throttled-py", True),
    ("pyrate-limiter", pyrate_limiter, "pyrate-limiter", True),
    ("token-bucket", token_bucket, "token-bucket", True),
    ("rust-py-rate-limit", rust_py_rate_limit, "rust-py-rate-limit", False),
]


def versions():
    packages = dict.fromkeys(package for _, _, package, _ in PEERS)
    return ", ".join(f"{package} {version(package)}" for package in packages)
