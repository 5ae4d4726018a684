-- Decides about callers, all of them or none, at one moment of this server's clock.
--
-- KEYS[i]  where the state of caller i is: 26 bytes of terms, 8 of its word; and more if the
--          word does not tell all, which is not understood here
-- ARGV[i]  what is asked about it. All numbers are unsigned and big endian.
--            26  the terms that it should have
--             8  the word that it has if it is not known here
--             1  the action: one of those below
--             1  1 if a denial does not keep the others from spending
--             1  1 if its state never expires
--             1  the layout of its word: one of those below
--             …  the numbers that the action needs under the layout
-- ARGV[#KEYS + 1]  only in tests: now in nanoseconds (8), the margin in milliseconds (8)
--
-- Replies with one string: now in nanoseconds (8), and for each caller
--             1  what was found: 0 it passes, 1 it is denied, 2 a state of other terms or
--                whose word does not tell all, 3 nothing, although the terms are an override
--             …  after 0 and 1 the word before (8), after 2 a length (2) and the state
--
-- READ is answered with 2 if there is anything, whatever else is written.
--
-- After any other 2, after 3, and if a caller is denied where that counts, nothing is written for any.
-- A caller that stands here twice is seen the second time as the first has left it.

-- What the second byte of terms is at least if they are an override.
local OVERRIDE = 128

-- The longest state that is told: those of this program are shorter.
local LONGEST = 4096

local LOOK, REFUSE, SPEND, TAKE, DEBIT, REFUND, RESET, GIVE_BACK, READ = 0, 1, 2, 3, 4, 5, 6, 7, 8
local BUCKET, STOCK, INTERVAL_BUCKET, FIXED_WINDOW, SLIDING_WINDOW = 0, 1, 2, 3, 4

-- Where in an argument the numbers begin.
local NUMBERS = 39

local LIMB = 4294967296
local floor, read, write = math.floor, struct.unpack, struct.pack
local sub, byte = string.sub, string.byte

