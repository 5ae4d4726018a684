-- What a node does once a second, in one call: the scripts that announce it, ask for edits and count
-- prefixes are functions above.
--
-- KEYS[1]  the nodes, and KEYS[2] the edits
-- ARGV[1]  to 4, as for an announcement
-- ARGV[5]  the version since when to return edits
-- ARGV[6]  and 7, as for counting prefixes: absent if they are not to be counted
--
-- Replies with what each replies, 0 if prefixes are not counted, and with Redis's time.

local alive = announce({ KEYS[1] }, { ARGV[1], ARGV[2], ARGV[3], ARGV[4] })
local others = 0
if ARGV[7] then others = prefixes({ KEYS[1] }, { ARGV[6], ARGV[7] }) end
local time = redis.call('TIME')
return { alive, edits_since({ KEYS[2] }, { ARGV[5] }), others, time[1], time[2] }
