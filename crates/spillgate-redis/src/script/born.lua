-- Returns when a limit was first used, and records it if that is now.
--
-- KEYS[1]  where that is noted: a version (1, which is 1), the nanoseconds (8, big endian)
--
-- Replies with what is noted.

local LIMB = 4294967296

local noted = redis.call('GET', KEYS[1])
if noted then return noted end

-- Nanoseconds are too large for a Lua number, hence two of 32 bits.
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local low = micros % LIMB * 1000
local high = math.floor(micros / LIMB) * 1000 + math.floor(low / LIMB)
noted = struct.pack('>BI4I4', 1, high, low % LIMB)
redis.call('SET', KEYS[1], noted)
return noted
