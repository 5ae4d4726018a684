-- Sliding windows: the word is the number of the window, and the counts of the previous and
-- of the current one. A count has at most 31 bits, so that it is a plain number here.
--
-- All actions: how many bits a count has (1), a window in nanoseconds (8), the limit (8), and
-- TAKE       as many times so much (8) as there is, at most so much (8)
-- DEBIT      so much (8), and the most that may be spent then (8)
-- REFUND     so much (8)
-- GIVE_BACK  so much (8), and the word that the spend left (8): it is given back to the window
--            that was charged, as long as that counts

-- A number of 32 bits times one of 64, as three of 32.
local function scaled(count, h, l)
  local high, low = product(count, l)
  local upper, middle = product(count, h)
  middle = middle + high
  if middle >= LIMB then upper, middle = upper + 1, middle - LIMB end
  return upper, middle, low
end

local function is_less(a, b, c, x, y, z)
  return a < x or (a == x and less(b, c, y, z))
end

-- The share of a count that a part of a window has, rounded up.
local function weighted(count, part_h, part_l, qh, ql)
  if count == 0 then return 0 end
  local a, b, c = scaled(count, part_h, part_l)
  -- Off by less than one, since it is below 2^31.
  local share = floor(count * ((part_h * LIMB + part_l) / (qh * LIMB + ql)))
  if share > 0 then share = share - 1 end
  local x, y, z = scaled(share, qh, ql)
  while is_less(x, y, z, a, b, c) do
    share = share + 1
    x, y, z = scaled(share, qh, ql)
  end
  return share
end

local function sliding_window(action, wh, wl, nh, nl, ask)
  local bits, qh, ql, mh, ml, amounts = read('>BI4I4I4I4', ask, NUMBERS)
  local at_h, at_l, past_h, past_l = divide(nh, nl, qh, ql)

  local function left(h, l, previous, current_h, current_l)
    local ends = h * LIMB + l + 2
    h, l = join(h, l, 0, previous, bits)
    h, l = join(h, l, current_h, current_l, bits)
    return h, l, ends * (qh * LIMB + ql) - (nh * LIMB + nl)
  end

  if action == RESET then return left(at_h, at_l, 0, 0, 0) end
  local rest_h, rest_l, _, current = split(wh, wl, bits)
  local h, l, _, previous = split(rest_h, rest_l, bits)
  if less(h, l, at_h, at_l) then
    h, l = plus(h, l, 0, 1)
    local is_next = h == at_h and l == at_l
    previous, current = is_next and current or 0, 0
    h, l = at_h, at_l
  elseif less(at_h, at_l, h, l) then
    -- Time went back behind the window, so none of it is past.
    past_h, past_l = 0, 0
  end

  local xh, xl, second = read('>I4I4', ask, amounts)
  if action == REFUND then
    return left(h, l, previous, minus(0, current, xh, xl))
  elseif action == GIVE_BACK then
    local after_h, after_l = read('>I4I4', ask, second)
    local over_h, over_l, _, count = split(after_h, after_l, bits)
    after_h, after_l = split(over_h, over_l, bits)
    xh, xl = smaller(xh, xl, 0, count)
    if after_h == h and after_l == l then
      return left(h, l, previous, minus(0, current, xh, xl))
    end
    after_h, after_l = plus(after_h, after_l, 0, 1)
    if after_h == h and after_l == l then
      local _, rest = minus(0, previous, xh, xl)
      return left(h, l, rest, 0, current)
    end
    local _, _, ends = left(h, l, previous, 0, current)
    return wh, wl, ends
  end

  local part_h, part_l = minus(qh, ql, past_h, past_l)
  local weight = weighted(previous, part_h, part_l, qh, ql)
  if action == TAKE then
    local spent = current + weight
    local rh, rl = minus(mh, ml, floor(spent / LIMB), spent % LIMB)
    xh, xl = taken(rh, rl, xh, xl, read('>I4I4', ask, second))
    if not xh then return nil end
    return left(h, l, previous, plus(0, current, xh, xl))
  end
  -- What the previous window weighs is spent as well.
  local most_h, most_l = read('>I4I4', ask, second)
  most_h, most_l = minus(most_h, most_l, 0, weight)
  most_h, most_l = larger(most_h, most_l, 0, current)
  xh, xl = plus(0, current, xh, xl)
  return left(h, l, previous, smaller(xh, xl, most_h, most_l))
end

