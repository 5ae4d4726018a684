-- Notes that a node is alive, and counts those that are.
--
-- KEYS[1]  a sorted set of nodes, by when they last said so, in microseconds
-- ARGV[1]  the node
-- ARGV[2]  for how many microseconds it counts as alive
--
-- Replies with how many nodes have said so within that time.

local key, node, lifetime = KEYS[1], ARGV[1], tonumber(ARGV[2])

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

redis.call('ZADD', key, now, node)
redis.call('ZREMRANGEBYSCORE', key, '-inf', now - lifetime)
redis.call('PEXPIRE', key, math.ceil(lifetime / 1000))
return redis.call('ZCARD', key)
