-- Holds, renews, releases and revokes permits of one caller under one limit, by Redis's clock.
--
-- KEYS[1]  a sorted set with everything about them: while a Cluster moves a slot, it runs no script
--          over several of its keys. The members, with their scores:
--          "e" and a holder (16)  when its permits expire, in microseconds: the only scores above 0
--          "c" and a holder       how many it holds, negated
--          "n" and a holder       the number of its last call, negated; absent for permits that a
--                                 program has acquired
--          "total"                how many are held by all, negated
-- ARGV[1]  hold, renew, release or revoke
-- ARGV[2]  the holder (16)
-- ARGV[3]  after how many microseconds they expire; for revoke, for how long a late hold changes
--          nothing
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

local key, op, holder, ttl = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])

-- How long the number of a call is kept once nothing is held, so that a late one is known.
local LATE = 2000000

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- How many a holder holds, the number of its last call, when they expire, and how many all hold.
local function held_by(member)
  local scores = redis.call('ZMSCORE', key, 'c' .. member, 'n' .. member, 'e' .. member, 'total')
  for i = 1, 4 do scores[i] = math.abs(scores[i] or 0) end
  return unpack(scores)
end

local function drop(member) redis.call('ZREM', key, 'c' .. member, 'n' .. member, 'e' .. member) end

local freed, expired = 0, 0

local function forget(member)
  local count, number = held_by(member)
  freed = freed + count
  if number == 0 then expired = expired + count end
  drop(member)
end

-- Not in the microsecond in which they end, some of which is left.
local gone = redis.call(
  'ZRANGE', key, '(0', string.format('(%.0f', now), 'BYSCORE', 'LIMIT', 0, 1000)
for _, member in ipairs(gone) do forget(string.sub(member, 2)) end

local own, last, expiry, total = held_by(holder)
-- There were more than a thousand that had expired.
if expiry > 0 and expiry < now then
  forget(holder)
  own, last, expiry = 0, 0, 0
end
total = total - freed

local function put(count, number, lasts)
  if count == 0 and number == 0 then
    drop(holder)
  else
    redis.call('ZADD', key, now + lasts, 'e' .. holder, 0 - count, 'c' .. holder)
    if number > 0 then redis.call('ZADD', key, 0 - number, 'n' .. holder) end
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
elseif op == 'revoke' then
  if own > 0 then is_done = 1 end
  put(0, 1, ttl)
elseif expiry > 0 and last == 0 then
  is_done = 1
  put(op == 'renew' and own or 0, 0, ttl)
end

local latest = tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2] or 0)
if latest > 0 then
  redis.call('ZADD', key, 0 - total, 'total')
  redis.call('PEXPIRE', key, math.ceil((latest - now) / 1000) + 1000)
else
  redis.call('DEL', key)
end
return struct.pack('>I4I4I4B', own, total, expired, is_done)
