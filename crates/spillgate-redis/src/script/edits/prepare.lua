-- KEYS[1]  a sorted set with all edits: while a Cluster moves a slot, it runs no script over several
--          of its keys. The members, with their scores:
--          "v", the hash of what is changed (16), when that ends in milliseconds (8, 0 if never), and
--                            the edit, encrypted: by the version of the edit, which is above ENDS
--          "e" and the hash  when it ends, for those that do: below ENDS
--          "n" and the hash  the version, negated
--          "last"            the last version, negated
--
-- An edit that has ended, or was undone, stays for a day: nodes that were away learn that it ended.

local key = KEYS[1]

local LIMB, KEPT, PAGE, ENDS = 4294967296, 86400000, 1000, '100000000000000'

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function digits(number) return string.format('%.0f', number) end

local function bytes(number)
  return struct.pack('>I4I4', math.floor(number / LIMB), number % LIMB)
end

-- The last version of all edits, or that of one; 0 if there is none.
local function version_of(member)
  return math.abs(redis.call('ZMSCORE', key, member)[1] or 0)
end

local function forget(name)
  local version = digits(version_of('n' .. name))
  redis.call('ZREMRANGEBYSCORE', key, version, version)
  redis.call('ZREM', key, 'n' .. name, 'e' .. name)
end

for _, member in ipairs(redis.call(
  'ZRANGE', key, '(0', digits(now - KEPT), 'BYSCORE', 'LIMIT', 0, PAGE)) do
  forget(string.sub(member, 2))
end
