-- Holds, renews and releases permits of one caller under one limit, by Redis's clock.
--
-- KEYS[1]  who holds permits, by when they expire in milliseconds
-- KEYS[2]  from each holder to how many it holds (4), the number of its last call (8, 0 for permits
--          that a program has acquired) and when they expire (8); "total" is how many are held by all
-- ARGV[1]  hold, renew or release
-- ARGV[2]  the holder (16)
-- ARGV[3]  after how many milliseconds they expire
-- And to hold:
-- ARGV[4]  the number of the call: a call with a smaller number than the last one changes nothing
-- ARGV[5]  how many the holder shall hold at least, with those that it has: denied if fewer are free
-- ARGV[6]  how many it needs: as many of them as are free
-- ARGV[7]  how many it can use: no more of them than a share of what is still free
-- ARGV[8]  how many there are
-- ARGV[9]  so many nodes share them
-- ARGV[10] 1 to hold the least also if fewer are free
--
-- Replies with one string: how many the holder holds (4), and all (4), how many acquired permits have
-- expired unreleased (4), 1 if that was done or 0 (1). Numbers are unsigned and big endian.

local holders, counts = KEYS[1], KEYS[2]
local op, holder, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])

local LIMB = 4294967296
-- How long the number of a call is kept once nothing is held, so that a late one is known.
local LATE = 2000

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local total, expired = tonumber(redis.call('HGET', counts, 'total') or 0), 0

local function digits(number) return string.format('%.0f', number) end

local function held_by(member)
  local value = redis.call('HGET', counts, member)
  if not value then return 0, 0, 0 end
  local count, number_high, number, expiry_high, expiry = struct.unpack('>I4I4I4I4I4', value)
  return count, number_high * LIMB + number, expiry_high * LIMB + expiry
end

local function forget(member)
  local count, number = held_by(member)
  total = total - count
  if number == 0 then expired = expired + count end
  redis.call('HDEL', counts, member)
  redis.call('ZREM', holders, member)
end

local gone = redis.call('ZRANGE', holders, '-inf', digits(now), 'BYSCORE', 'LIMIT', 0, 1000)
for _, member in ipairs(gone) do forget(member) end

local own, last, expiry = held_by(holder)
-- There were more than a thousand that had expired.
if expiry > 0 and expiry <= now then
  forget(holder)
  own, last, expiry = 0, 0, 0
end

local function put(count, number, lasts)
  if count == 0 and number == 0 then
    redis.call('HDEL', counts, holder)
    redis.call('ZREM', holders, holder)
  else
    local ends = now + lasts
    local value = struct.pack(
      '>I4I4I4I4I4', count, math.floor(number / LIMB), number % LIMB, math.floor(ends / LIMB),
      ends % LIMB)
    redis.call('HSET', counts, holder, value)
    redis.call('ZADD', holders, digits(ends), holder)
  end
  total = total - own + count
  own = count
end

local is_done = 0
if op == 'hold' then
  local number, least, needed, usable, limit =
    tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
  if number >= last then
    local free, count = limit - (total - own), math.min(own, usable)
    if least <= free then
      is_done = 1
      -- What it has is in use, also if there are fewer permits than there were.
      local sure = math.max(least, math.min(needed, math.max(free, own)))
      local share = math.floor(math.max(0, free - sure) / (2 * tonumber(ARGV[9])))
      count = math.max(sure, math.min(usable, sure + share))
    elseif ARGV[10] == '1' then
      count = least
    end
    put(count, number, count > 0 and ttl or math.min(ttl, LATE))
  end
elseif expiry > 0 and last == 0 then
  is_done = 1
  put(op == 'renew' and own or 0, 0, ttl)
end

local latest = redis.call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2]
if latest then
  redis.call('HSET', counts, 'total', digits(total))
  local lasts = digits(latest - now + 1000)
  redis.call('PEXPIRE', holders, lasts)
  redis.call('PEXPIRE', counts, lasts)
else
  redis.call('DEL', holders, counts)
end
return struct.pack('>I4I4I4B', own, total, expired, is_done)
