-- Does whatever the other scripts and calls do, to see whether it can be done here and now.
--
-- KEYS[1]  a key that nobody uses otherwise, and that is gone a second later
--
-- Replies with Redis's time.

local key = KEYS[1]

-- First a write that is refused by a replica, and by Redis that has no memory left.
redis.call('SET', key, '', 'PX', 1000)
redis.call('GET', key)
redis.call('DEL', key)
redis.call('GETDEL', key)
redis.call('ZADD', key, 1, '')
redis.call('PEXPIRE', key, 1000)
redis.call('ZREMRANGEBYSCORE', key, '-inf', 1)
redis.call('ZCARD', key)
redis.call('ZRANGE', key, 0, -1)
redis.call('ZMSCORE', key, '')
redis.call('ZCOUNT', key, 0, 1)
redis.call('PERSIST', key)
redis.call('ZREM', key, '')
return redis.call('TIME')
