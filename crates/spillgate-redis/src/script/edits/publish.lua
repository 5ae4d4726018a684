-- Stores edits, each under a version of its own.
--
-- ARGV[1]  how many edits there may be
-- ARGV[…]  for each edit the hash of what is changed (16), 0 if it does not end, 1 if it ends, 2 if it
--          is undone (1), in how many milliseconds it ends (8), and the edit, encrypted
--
-- Replies with 1, or 0 if there would be too many: then nothing is written.

local function field_of(edit) return string.sub(edit, 1, 16) end

local added = {}
for i = 2, #ARGV do
  local field = field_of(ARGV[i])
  if not redis.call('HGET', values, field) then added[field] = true end
end
local total = redis.call('ZCARD', versions)
for _ in pairs(added) do total = total + 1 end
if total > tonumber(ARGV[1]) then return 0 end

-- A log that was lost begins anew below all versions of earlier ones, so that nodes notice: versions
-- of a log begin the lower the later it began, at a distance for a million edits per second.
local version = tonumber(redis.call('HGET', values, 'version') or (LIMB - time[1]) * 1048576)

for i = 2, #ARGV do
  local edit, field = ARGV[i], field_of(ARGV[i])
  local kind, high, low = struct.unpack('>BI4I4', edit, 17)
  local ending = 0
  if kind ~= 0 then ending = now + high * LIMB + low end
  version = version + 1
  redis.call('HSET', values, field, bytes(version) .. bytes(ending) .. string.sub(edit, 26))
  redis.call('ZADD', versions, digits(version), field)
  if kind == 0 then
    redis.call('ZREM', ends, field)
  else
    redis.call('ZADD', ends, digits(ending), field)
  end
end
redis.call('HSET', values, 'version', digits(version))

-- Once every edit ends, so do the keys.
local last = redis.call('ZRANGE', ends, -1, -1, 'WITHSCORES')[2]
local is_ending = redis.call('ZCARD', ends) == redis.call('ZCARD', versions)
for _, key in ipairs(KEYS) do
  if is_ending then
    redis.call('PEXPIRE', key, digits(last - now + KEPT + 1000))
  else
    redis.call('PERSIST', key)
  end
end
return 1
