-- Numbers of 64 bits, each as two of 32, the high one first: a number of Lua is exact only
-- up to 2^53. Only powers of two stand to the right of %, so that it is exact as well.

local function less(ah, al, bh, bl)
  return ah < bh or (ah == bh and al < bl)
end

local function larger(ah, al, bh, bl)
  if less(ah, al, bh, bl) then return bh, bl end
  return ah, al
end

local function smaller(ah, al, bh, bl)
  if less(ah, al, bh, bl) then return ah, al end
  return bh, bl
end

-- The sum, or the largest number there is.
local function plus(ah, al, bh, bl)
  local high, low = ah + bh, al + bl
  if low >= LIMB then high, low = high + 1, low - LIMB end
  if high >= LIMB then return LIMB - 1, LIMB - 1 end
  return high, low
end

-- The difference, or zero.
local function minus(ah, al, bh, bl)
  local high, low = ah - bh, al - bl
  if low < 0 then high, low = high - 1, low + LIMB end
  if high < 0 then return 0, 0 end
  return high, low
end

-- The product of two numbers of 32 bits.
local function product(a, b)
  local upper = floor(a / 65536) * b
  local lower = upper % 65536 * 65536 + a % 65536 * b
  return floor(upper / 65536) + floor(lower / LIMB), lower % LIMB
end

-- The product, or the largest number there is.
local function times(ah, al, bh, bl)
  local high, low = product(al, bl)
  local over, middle = product(ah, bl)
  local beyond, other = product(al, bh)
  high = high + middle + other
  if (ah > 0 and bh > 0) or over > 0 or beyond > 0 or high >= LIMB then
    return LIMB - 1, LIMB - 1
  end
  return high, low
end

-- The quotient of a number below 2^63 by one below 2^62, and the rest.
local function divide(nh, nl, dh, dl)
  local divisor = dh * LIMB + dl
  if divisor <= 2097152 then
    -- All that is divided here is below 2^53.
    local high = floor(nh / divisor)
    local carried = (nh - high * divisor) * LIMB + nl
    local low = floor(carried / divisor)
    return high, low, 0, carried - low * divisor
  end
  -- The quotient is below 2^42, and a fraction of Lua is off by less than 2^-50 of it.
  local quotient = floor((nh * LIMB + nl) / divisor)
  local ph, pl = times(floor(quotient / LIMB), quotient % LIMB, dh, dl)
  if less(nh, nl, ph, pl) then
    quotient = quotient - 1
    ph, pl = minus(ph, pl, dh, dl)
  end
  local rh, rl = minus(nh, nl, ph, pl)
  if not less(rh, rl, dh, dl) then
    quotient = quotient + 1
    rh, rl = minus(rh, rl, dh, dl)
  end
  return floor(quotient / LIMB), quotient % LIMB, rh, rl
end

-- The quotient, rounded up.
local function divide_up(nh, nl, dh, dl)
  local qh, ql, rh, rl = divide(nh, nl, dh, dl)
  if rh > 0 or rl > 0 then return plus(qh, ql, 0, 1) end
  return qh, ql
end

-- What is taken of what remains, at most so much: as many times the least as there are, nil if
-- there is less.
local function taken(rh, rl, least_h, least_l, most_h, most_l)
  rh, rl = smaller(rh, rl, most_h, most_l)
  if less(rh, rl, least_h, least_l) then return nil end
  local _, _, rest_h, rest_l = divide(rh, rl, least_h, least_l)
  return minus(rh, rl, rest_h, rest_l)
end

