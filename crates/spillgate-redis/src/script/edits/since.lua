-- Returns the edits since a version, in their order: a page of them.
--
-- ARGV[1]  the version: if it is later than the last one, all edits are returned
--
-- Replies with one string: the replication history of this server, which ends with a failover (8), the
-- version of the last edit of the page, or of all if it is the last page (8), 1 if there are more or 0 (1), and for each edit the hash of what is changed (16), 0 if it does
-- not end, 1 if it ends, 2 if it has ended (1), in how many milliseconds it ends (8), the length of
-- the edit (4), and the edit, encrypted.

local since, version = tonumber(ARGV[1]), version_of('last')
if since > version then since = 0 end

local page = redis.call(
  'ZRANGE', key, '(' .. digits(math.max(since, ENDS)), '+inf', 'BYSCORE', 'LIMIT', 0, PAGE,
  'WITHSCORES')
local more = 0
if #page == 2 * PAGE then version, more = tonumber(page[#page]), 1 end

local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''
local function part(first) return tonumber(string.sub(history, first, first + 7), 16) or 0 end

local reply = { struct.pack('>I4I4', part(1), part(9)), bytes(version), string.char(more) }
for i = 1, #page, 2 do
  local high, low = struct.unpack('>I4I4', page[i], 18)
  local ending, kind, left = high * LIMB + low, 0, 0
  if ending > now then
    kind, left = 1, ending - now
  elseif ending > 0 then
    kind = 2
  end
  local name, edit = string.sub(page[i], 2, 17), string.sub(page[i], 26)
  reply[#reply + 1] = name .. string.char(kind) .. bytes(left) .. struct.pack('>I4', #edit)
  reply[#reply + 1] = edit
end
return table.concat(reply)
