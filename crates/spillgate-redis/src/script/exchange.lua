-- Puts a state in place of another, if that is still the one there.
--
-- KEYS[1]  where the state is
-- ARGV[1]  what must be there: empty if nothing must
-- ARGV[2]  what shall be there: empty if nothing shall
-- ARGV[3]  in how many milliseconds it may be forgotten: empty if never
--
-- Replies with 1 if it did, 0 if something else was there.

local key, old, new, expiry = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

if (redis.call('GET', key) or '') ~= old then return 0 end

if new == '' then
  redis.call('DEL', key)
elseif expiry == '' then
  redis.call('SET', key, new)
else
  redis.call('SET', key, new, 'PX', expiry)
end
return 1
