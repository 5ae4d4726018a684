-- Token and leaky buckets: the word is the moment at which nothing is spent any more.
-- Under the layout STOCK time stands still at zero, and the word counts what is spent.
--
-- SPEND   the price (8), and the most that may be spent before it (8): both in nanoseconds
-- TAKE    as many times so many tokens (8) as there are, at most so many (8), a token's price
--         (8), that of all that there can be (8)
-- DEBIT   the price (8), and that of the most that may be spent then (8)
-- REFUND  the price (8), the word below which nothing is given back (8), and the word that the
--         charge left (8): what has been refilled since is not given back
-- RESET   the word below which nothing is forgotten (8)

local function take_from_bucket(wh, wl, th, tl, ask)
  local lh, ll, mh, ml, ih, il, sh, sl = read('>I4I4I4I4I4I4I4I4', ask, NUMBERS)
  local bh, bl = larger(wh, wl, th, tl)
  local rh, rl = minus(sh, sl, minus(bh, bl, th, tl))
  rh, rl = divide(rh, rl, ih, il)
  rh, rl = taken(rh, rl, lh, ll, mh, ml)
  if not rh then return nil end
  return plus(bh, bl, times(rh, rl, ih, il))
end

-- The word that an action leaves of a bucket's word at a time: nil if it is denied. To SPEND
-- stands with the decision.
local function bucket(action, wh, wl, th, tl, ask)
  if action == TAKE then
    return take_from_bucket(wh, wl, th, tl, ask)
  elseif action == DEBIT then
    local ph, pl, mh, ml = read('>I4I4I4I4', ask, NUMBERS)
    local bh, bl = larger(wh, wl, th, tl)
    bh, bl = plus(bh, bl, ph, pl)
    mh, ml = plus(th, tl, mh, ml)
    -- No debt is deeper than 2^63 either, unless it was so already.
    mh, ml = smaller(mh, ml, 2147483648, 0)
    return smaller(bh, bl, larger(mh, ml, wh, wl))
  elseif action == REFUND then
    local ph, pl, fh, fl, ch, cl = read('>I4I4I4I4I4I4', ask, NUMBERS)
    ph, pl = smaller(ph, pl, minus(ch, cl, th, tl))
    -- Not below now either: idle is as full as a bucket gets.
    fh, fl = larger(fh, fl, th, tl)
    fh, fl = smaller(fh, fl, wh, wl)
    wh, wl = minus(wh, wl, ph, pl)
    return larger(wh, wl, fh, fl)
  end
  return larger(th, tl, read('>I4I4', ask, NUMBERS))
end

