-- Notes which prefixes nodes have, and counts the others.
--
-- They are noted in one place, so that nodes with different prefixes find each other. It is not
-- among KEYS: where access rules or the slots of a Cluster do not let us there, that is no error.
--
-- KEYS[1]  a key of the prefix, which is not touched
-- ARGV[1]  the prefix
-- ARGV[2]  for how many microseconds it counts
--
-- Replies with how many other prefixes there are, or -1 if the ACL forbids it.

local place, prefix, lifetime = 'spillgate:prefixes', ARGV[1], tonumber(ARGV[2])

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

if type(redis.pcall('ZADD', place, now, prefix)) ~= 'number' then return -1 end
redis.call('ZREMRANGEBYSCORE', place, '-inf', now - lifetime)
redis.call('PEXPIRE', place, math.ceil(lifetime / 1000))
return redis.call('ZCARD', place) - 1
