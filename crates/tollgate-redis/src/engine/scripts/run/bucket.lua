-- Token and leaky buckets: the word is the moment at which nothing is spent any more.
-- Under the layout STOCK time stands still at zero, and the word counts what is spent.
--
-- SPEND   the price (8), and the most that may be spent before it (8): both in nanoseconds
-- TAKE    at least so many tokens (8), at most so many (8), a token's price (8), that of all
--         that there can be (8)
-- CHARGE, REFUND  the price (8)

local function take_from_bucket(wh, wl, th, tl, ask)
  local _, times, divide = wide()
  local lh, ll, mh, ml, ih, il, sh, sl = read('>I4I4I4I4I4I4I4I4', ask, 39)
  local bh, bl = larger(wh, wl, th, tl)
  local rh, rl = minus(sh, sl, minus(bh, bl, th, tl))
  rh, rl = divide(rh, rl, ih, il)
  rh, rl = smaller(rh, rl, mh, ml)
  if less(rh, rl, lh, ll) then return nil end
  return plus(bh, bl, times(rh, rl, ih, il))
end

-- The word that an action leaves of a bucket's word at a time: nil if it is denied.
local function bucket(action, wh, wl, th, tl, fh, fl, ask)
  if action == SPEND then
    local ph, pl, rh, rl = read('>I4I4I4I4', ask, 39)
    local bh, bl = larger(wh, wl, th, tl)
    if less(rh, rl, minus(bh, bl, th, tl)) then return nil end
    return plus(bh, bl, ph, pl)
  elseif action == TAKE then
    return take_from_bucket(wh, wl, th, tl, ask)
  elseif action == RESET then
    return larger(fh, fl, th, tl)
  end
  local ph, pl = read('>I4I4', ask, 39)
  if action == CHARGE then
    -- No debt is deeper than 2^63, unless it was so already.
    local dh, dl = larger(2147483648, 0, wh, wl)
    local bh, bl = larger(wh, wl, th, tl)
    bh, bl = plus(bh, bl, ph, pl)
    return smaller(bh, bl, dh, dl)
  end
  -- Not below now, nor below what a caller that is not known has.
  th, tl = larger(th, tl, fh, fl)
  th, tl = smaller(th, tl, wh, wl)
  wh, wl = minus(wh, wl, ph, pl)
  return larger(wh, wl, th, tl)
end

