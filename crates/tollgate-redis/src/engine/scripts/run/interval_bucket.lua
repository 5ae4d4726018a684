-- Interval buckets: the word is the quantum of the last refill, and what is spent.
--
-- All actions: how many bits the count has (1), a quantum in nanoseconds (8), a period in
-- quanta (8), what is refilled (8), the burst (8), and then
-- TAKE    at least so many tokens (8), at most so many (8)
-- CHARGE, REFUND  so many tokens (8)

local function interval_bucket(action, wh, wl, nh, nl, fh, fl, ask)
  local bits, qh, ql, ph, pl, ah, al, bh, bl, amounts = read('>BI4I4I4I4I4I4I4I4', ask, NUMBERS)
  local at_h, at_l, rest_h, rest_l = divide(nh, nl, qh, ql)
  local up_h, up_l = at_h, at_l
  if rest_h > 0 or rest_l > 0 then up_h, up_l = plus(at_h, at_l, 0, 1) end

  -- The last refill and what is spent, after every refill that is due.
  local function refilled(h, l)
    local lh, ll, ch, cl = split(h, l, bits)
    local eh, el = minus(at_h, at_l, lh, ll)
    local kh, kl, dh, dl = divide(eh, el, ph, pl)
    eh, el = minus(eh, el, dh, dl)
    lh, ll = plus(lh, ll, eh, el)
    return lh, ll, minus(ch, cl, times(kh, kl, ah, al))
  end

  -- In how many nanoseconds nothing is spent any more, about.
  local function idle_after(lh, ll, ch, cl)
    local periods = math.ceil((ch * LIMB + cl) / (ah * LIMB + al))
    local idle = lh * LIMB + ll + periods * (ph * LIMB + pl)
    return idle * (qh * LIMB + ql) - (nh * LIMB + nl)
  end

  local function left(lh, ll, ch, cl)
    local h, l = join(lh, ll, ch, cl, bits)
    return h, l, idle_after(split(h, l, bits))
  end

  local lh, ll, ch, cl = refilled(wh, wl)
  if action == RESET then
    local ih, il, oh, ol = refilled(fh, fl)
    if oh > 0 or ol > 0 then return fh, fl, idle_after(ih, il, oh, ol) end
    ih, il = larger(ih, il, up_h, up_l)
    return left(ih, il, 0, 0)
  end
  local xh, xl, most = read('>I4I4', ask, amounts)
  if action == REFUND then
    -- Not beyond what a caller that is not known has.
    local _, _, oh, ol = refilled(fh, fl)
    xh, xl = minus(ch, cl, xh, xl)
    xh, xl = larger(xh, xl, oh, ol)
    if less(xh, xl, ch, cl) then return left(lh, ll, xh, xl) end
    return wh, wl, idle_after(lh, ll, ch, cl)
  elseif action == TAKE then
    local rh, rl = minus(bh, bl, ch, cl)
    xh, xl = taken(rh, rl, xh, xl, read('>I4I4', ask, most))
    if not xh then return nil end
  end
  -- The call that finds the bucket full begins a period.
  if ch == 0 and cl == 0 then lh, ll = larger(lh, ll, up_h, up_l) end
  return left(lh, ll, plus(ch, cl, xh, xl))
end

