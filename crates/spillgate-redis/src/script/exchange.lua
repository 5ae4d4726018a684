-- Puts a state in place of another, if that is still the one there.
--
-- KEYS[1]  where the state is
-- ARGV[1]  what must be there: empty if nothing must
-- ARGV[2]  what shall be there: empty if nothing shall
-- ARGV[3]  in how many milliseconds it may be forgotten: empty if never
-- ARGV[4]  empty if the whole state is exchanged, base and all; otherwise only terms and word
--          are compared and put in place, and a base stays
--
-- Replies with 1 if it did, 0 if something else was there.

local key, old, new, expiry = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local sub = string.sub

local value = redis.call('GET', key) or ''

if ARGV[4] == '' then
  if value ~= old then return 0 end
else
  -- The version, which is the first byte, may be another.
  local is_known = #value == 34 or #value == 76
  if not is_known or string.byte(value, 1) > 2 or sub(value, 2, 34) ~= sub(old, 2, 34) then
    return 0
  end
  local base = sub(value, 35)
  if base ~= '' then
    new = string.char(2) .. sub(new, 2, 34) .. base
    -- It is kept for as long as it needs, and a second longer as all states are.
    local high, low = struct.unpack('>I4I4', base, 35)
    if high == 0 and low == 0 then
      expiry = ''
    elseif expiry ~= '' then
      local time = redis.call('TIME')
      local needed = high * 4294967296 + low - time[1] * 1000 + 1000
      -- No longer than there is time.
      expiry = math.max(tonumber(expiry), math.min(math.ceil(needed), 4611686018427))
    end
  end
end

if new == '' then
  redis.call('DEL', key)
elseif expiry == '' then
  redis.call('SET', key, new)
else
  redis.call('SET', key, new, 'PX', expiry)
end
return 1
