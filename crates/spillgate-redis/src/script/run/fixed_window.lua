-- Fixed windows: the word is the quantum at which the window began, and the count.
--
-- All actions: how many bits the count has (1), a quantum in nanoseconds (8), a window in
-- quanta (8), which is 1 if windows follow the clock, the limit (8), and then
-- TAKE       as many times so much (8) as there is, at most so much (8)
-- DEBIT      so much (8), and the most that may be counted then (8)
-- REFUND     so much (8)
-- GIVE_BACK  so much (8), and the word that the spend left (8): only what is counted in the
--            same window is given back

local function fixed_window(action, wh, wl, nh, nl, ask)
  local bits, qh, ql, length_h, length_l, mh, ml, amounts = read('>BI4I4I4I4I4I4', ask, NUMBERS)
  local is_aligned = length_h == 0 and length_l == 1
  local at_h, at_l, rest_h, rest_l = divide(nh, nl, qh, ql)
  -- When a window begins whose first call comes now.
  local first_h, first_l = at_h, at_l
  if not is_aligned and (rest_h > 0 or rest_l > 0) then
    first_h, first_l = plus(at_h, at_l, 0, 1)
  end

  local function idle_after(bh, bl)
    local ends = (bh + length_h) * LIMB + bl + length_l
    return ends * (qh * LIMB + ql) - (nh * LIMB + nl)
  end

  local function left(bh, bl, ch, cl)
    local h, l = join(bh, bl, ch, cl, bits)
    return h, l, idle_after(bh, bl)
  end

  -- The window that a call is counted in now, and the count so far.
  local function counted(h, l)
    local bh, bl, ch, cl = split(h, l, bits)
    local is_running = less(at_h, at_l, plus(bh, bl, length_h, length_l))
    -- A window without a count has not begun, but none begins before it.
    if not is_running or (ch == 0 and cl == 0 and not is_aligned) then
      bh, bl = larger(first_h, first_l, bh, bl)
      ch, cl = 0, 0
    end
    return bh, bl, ch, cl
  end

  if action == RESET then return left(first_h, first_l, 0, 0) end
  local bh, bl, ch, cl = counted(wh, wl)
  local xh, xl, second = read('>I4I4', ask, amounts)
  if action == REFUND then
    return left(bh, bl, minus(ch, cl, xh, xl))
  elseif action == GIVE_BACK then
    local after_h, after_l, oh, ol = counted(read('>I4I4', ask, second))
    -- One that has moved may be late by a step, but windows do not overlap.
    local apart_h, apart_l = minus(after_h, after_l, bh, bl)
    if apart_h == 0 and apart_l == 0 then
      apart_h, apart_l = minus(bh, bl, after_h, after_l)
    end
    if not less(apart_h, apart_l, length_h, length_l) then return wh, wl, idle_after(bh, bl) end
    xh, xl = smaller(xh, xl, oh, ol)
    return left(bh, bl, minus(ch, cl, xh, xl))
  elseif action == TAKE then
    local rh, rl = minus(mh, ml, ch, cl)
    xh, xl = taken(rh, rl, xh, xl, read('>I4I4', ask, second))
    if not xh then return nil end
    return left(bh, bl, plus(ch, cl, xh, xl))
  end
  local most_h, most_l = read('>I4I4', ask, second)
  most_h, most_l = larger(most_h, most_l, ch, cl)
  xh, xl = plus(ch, cl, xh, xl)
  return left(bh, bl, smaller(xh, xl, most_h, most_l))
end

