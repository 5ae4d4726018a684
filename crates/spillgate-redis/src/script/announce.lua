-- Notes which nodes are alive, and counts them.
--
-- KEYS[1]  a sorted set of nodes, by when they last said so, in microseconds. A member is a node's
--          name (16), and what it shares by: its fingerprint, or nothing.
-- ARGV[1]  the member that is alive: empty if none is to be noted
-- ARGV[2]  a member that is gone: empty if none is
-- ARGV[3]  for how many microseconds members count as alive
-- ARGV[4]  empty, or 1 to list what the others share by
--
-- Replies with one string: how many are alive (4), and if they are listed, for each fingerprint how
-- many others have it (4), its length (1) and itself. All numbers are unsigned and big endian.

local key, own, gone, lifetime = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

if gone ~= '' then redis.call('ZREM', key, gone) end
if own ~= '' then redis.call('ZADD', key, now, own) end
redis.call('ZREMRANGEBYSCORE', key, '-inf', now - lifetime)
redis.call('PEXPIRE', key, math.ceil(lifetime / 1000))

local reply = struct.pack('>I4', redis.call('ZCARD', key))
if ARGV[4] == '' then return reply end

local counts = {}
for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
  if member ~= own then
    local fingerprint = string.sub(member, 17, 271)
    counts[fingerprint] = (counts[fingerprint] or 0) + 1
  end
end
for fingerprint, count in pairs(counts) do
  reply = reply .. struct.pack('>I4B', count, #fingerprint) .. fingerprint
end
return reply
