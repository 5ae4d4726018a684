-- Stores edits, each under a version of its own.
--
-- ARGV[1]  how many edits there may be
-- ARGV[…]  for each edit the hash of what is changed (16), 0 if it does not end, 1 if it ends, 2 if it
--          is undone (1), in how many milliseconds it ends (8), and the edit, encrypted
--
-- Replies with 1, or 0 if there would be too many: then nothing is written.

-- A log that was lost begins anew below all versions of earlier ones, so that nodes notice: versions
-- of a log begin the lower the later it began, at a distance for a million edits per second.
local version = version_of('last')
local total = redis.call('ZCOUNT', key, '-inf', '(0')
if version > 0 then total = total - 1 else version = (LIMB - time[1]) * 1048576 end

local added = {}
for i = 2, #ARGV do
  local name = string.sub(ARGV[i], 1, 16)
  if not added[name] and version_of('n' .. name) == 0 then
    added[name], total = true, total + 1
  end
end
if total > tonumber(ARGV[1]) then return 0 end

for i = 2, #ARGV do
  local edit, name = ARGV[i], string.sub(ARGV[i], 1, 16)
  local kind, high, low = struct.unpack('>BI4I4', edit, 17)
  local ending = 0
  if kind ~= 0 then ending = now + high * LIMB + low end
  forget(name)
  version = version + 1
  local value = 'v' .. name .. bytes(ending) .. string.sub(edit, 26)
  redis.call('ZADD', key, version, value, 0 - version, 'n' .. name)
  if ending > 0 then redis.call('ZADD', key, ending, 'e' .. name) end
end
redis.call('ZADD', key, 0 - version, 'last')

-- Once every edit ends, so does the key.
if redis.call('ZCOUNT', key, '(0', ENDS) == total then
  local last = redis.call(
    'ZRANGE', key, ENDS, '(0', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
  redis.call('PEXPIRE', key, digits(last - now + KEPT + 1000))
else
  redis.call('PERSIST', key)
end
return 1
