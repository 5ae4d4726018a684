-- Interval buckets: the word is the quantum of the last refill, and what is spent. A debt that
-- is deeper than the count is told by a later refill, after which the rest of it is left.
--
-- All actions: how many bits the count has (1), a quantum in nanoseconds (8), a period in
-- quanta (8), what is refilled (8), the burst (8), and then
-- TAKE       as many times so many tokens (8) as there are, at most so many (8)
-- DEBIT      so many tokens (8), and the most that may be spent then (8)
-- REFUND     so many tokens (8)
-- GIVE_BACK  so many tokens (8), and the word that the spend left (8): what has been refilled
--            since is not given back

local function interval_bucket(action, wh, wl, nh, nl, fh, fl, ask)
  local bits, qh, ql, ph, pl, ah, al, bh, bl, amounts =
    read('>BI4I4I4I4I4I4I4I4', ask, NUMBERS)
  local up_h, up_l = divide_up(nh, nl, qh, ql)
  local most_h, most_l = most_of(bits)
  -- If a refill is more than half of what the count has room for, its rest counts as a whole.
  local half_h, half_l = divide(most_h, most_l, 0, 2)
  local is_exact = not less(half_h, half_l, ah, al)

  -- True if a debt may be deeper than the count says. Time that went back looks the same. One
  -- quantum is nothing: a word that has moved may be that late.
  local function is_told_by_a_refill(lh, ll, ch, cl)
    local late_h, late_l = plus(up_h, up_l, 0, 1)
    return less(bh, bl, ch, cl) and less(late_h, late_l, lh, ll)
  end

  local function after_refills(lh, ll, ch, cl)
    local at_h, at_l = divide(nh, nl, qh, ql)
    local eh, el = minus(at_h, at_l, lh, ll)
    local kh, kl, dh, dl = divide(eh, el, ph, pl)
    eh, el = minus(eh, el, dh, dl)
    lh, ll = plus(lh, ll, eh, el)
    return lh, ll, minus(ch, cl, times(kh, kl, ah, al))
  end

  -- The last refill and all that is owed, after every refill that is due.
  local function all_owed(h, l)
    local lh, ll, ch, cl = split(h, l, bits)
    if not is_told_by_a_refill(lh, ll, ch, cl) then return after_refills(lh, ll, ch, cl) end
    local eh, el = minus(lh, ll, up_h, up_l)
    local kh, kl = divide_up(eh, el, ph, pl)
    local gh, gl = divide(lh, ll, ph, pl)
    kh, kl = smaller(kh, kl, gh, gl)
    ch, cl = plus(ch, cl, times(kh, kl, ah, al))
    lh, ll = minus(lh, ll, times(kh, kl, ph, pl))
    return lh, ll, ch, cl
  end

  -- The same, with what is spent as far as the count tells it.
  local function refilled(h, l)
    if is_exact then return all_owed(h, l) end
    return after_refills(split(h, l, bits))
  end

  -- In how many nanoseconds nothing is spent any more, about.
  local function idle_after(lh, ll, ch, cl)
    local periods = math.ceil((ch * LIMB + cl) / (ah * LIMB + al))
    local idle = lh * LIMB + ll + periods * (ph * LIMB + pl)
    return idle * (qh * LIMB + ql) - (nh * LIMB + nl)
  end

  local function written(h, l)
    return h, l, idle_after(split(h, l, bits))
  end

  local function left(lh, ll, ch, cl)
    if not less(most_h, most_l, ch, cl) then return written(join(lh, ll, ch, cl, bits)) end
    local oh, ol = minus(ch, cl, most_h, most_l)
    local kh, kl = divide_up(oh, ol, ah, al)
    local rh, rl = plus(lh, ll, times(kh, kl, ph, pl))
    local last_h, last_l = last_of(bits)
    if is_exact and not less(last_h, last_l, rh, rl) then
      ch, cl = minus(ch, cl, times(kh, kl, ah, al))
    else
      ch, cl = most_h, most_l
    end
    return written(join(rh, rl, ch, cl, bits))
  end

  local lh, ll, ch, cl = refilled(wh, wl)
  if action == RESET then
    local ih, il, oh, ol = refilled(fh, fl)
    if oh > 0 or ol > 0 then return written(fh, fl) end
    ih, il = larger(ih, il, up_h, up_l)
    return left(ih, il, 0, 0)
  end
  local xh, xl, second = read('>I4I4', ask, amounts)
  if action == REFUND or action == GIVE_BACK then
    if action == GIVE_BACK then
      local _, _, oh, ol = refilled(read('>I4I4', ask, second))
      xh, xl = smaller(xh, xl, oh, ol)
    end
    -- Not beyond what a caller that is not known has, nor while nobody knows how deep a debt
    -- is.
    local _, _, oh, ol = refilled(fh, fl)
    if is_told_by_a_refill(lh, ll, ch, cl) then oh, ol = larger(oh, ol, bh, bl) end
    xh, xl = minus(ch, cl, xh, xl)
    xh, xl = larger(xh, xl, oh, ol)
    if less(xh, xl, ch, cl) then return left(lh, ll, xh, xl) end
    return written(wh, wl)
  elseif action == TAKE then
    local rh, rl = minus(bh, bl, ch, cl)
    xh, xl = taken(rh, rl, xh, xl, read('>I4I4', ask, second))
    if not xh then return nil end
  else
    local mh, ml = read('>I4I4', ask, second)
    local counted_h, counted_l = smaller(xh, xl, minus(mh, ml, ch, cl))
    local sh, sl = plus(ch, cl, counted_h, counted_l)
    if less(most_h, most_l, sh, sl) then
      -- What the count has no room for is told with all that is owed.
      lh, ll, ch, cl = all_owed(wh, wl)
      xh, xl = smaller(xh, xl, minus(mh, ml, ch, cl))
    else
      xh, xl = counted_h, counted_l
    end
  end
  -- The call that finds the bucket full begins a period.
  if ch == 0 and cl == 0 then lh, ll = larger(lh, ll, up_h, up_l) end
  return left(lh, ll, plus(ch, cl, xh, xl))
end

