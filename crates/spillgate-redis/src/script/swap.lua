-- Replaces a value if it is still the expected one, and returns it with the time.
--
-- KEYS[1]  where the value is
-- ARGV[1]  1 to replace it, 0 to only look
-- ARGV[2]  the expected value: empty if there must be none
-- ARGV[3]  the new value: empty to delete it
-- ARGV[4]  its TTL in milliseconds
--
-- Replies with one string: Redis's time in nanoseconds (8, big endian), 1 if it was replaced or 0 (1),
-- and the value that is there now.

local LIMB = 4294967296

local key, value, is_swapped = KEYS[1], redis.call('GET', KEYS[1]) or '', 0
if ARGV[1] == '1' and value == ARGV[2] then
  value, is_swapped = ARGV[3], 1
  if value == '' then
    redis.call('DEL', key)
  else
    redis.call('SET', key, value, 'PX', ARGV[4])
  end
end

-- Nanoseconds are too large for a Lua number, hence two of 32 bits.
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local low = micros % LIMB * 1000
local high = math.floor(micros / LIMB) * 1000 + math.floor(low / LIMB)
return struct.pack('>I4I4B', high, low % LIMB, is_swapped) .. value
