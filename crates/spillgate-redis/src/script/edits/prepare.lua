-- KEYS[1]  the edits: from the hash of what is changed (16) to the version of its last edit (8), when
--          that ends in milliseconds (8, 0 if never), and the edit, encrypted. "version" is the last
--          version, in digits.
-- KEYS[2]  the same hashes by version
-- KEYS[3]  those that end, by when they do
--
-- An edit that has ended, or was undone, stays for a day: nodes that were away learn that it ended.

local values, versions, ends = KEYS[1], KEYS[2], KEYS[3]

local LIMB, KEPT, PAGE = 4294967296, 86400000, 1000

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function digits(number) return string.format('%.0f', number) end

local function bytes(number)
  return struct.pack('>I4I4', math.floor(number / LIMB), number % LIMB)
end

for _, field in ipairs(redis.call(
  'ZRANGE', ends, '-inf', digits(now - KEPT), 'BYSCORE', 'LIMIT', 0, PAGE)) do
  redis.call('HDEL', values, field)
  redis.call('ZREM', versions, field)
  redis.call('ZREM', ends, field)
end
