-- Words in which a time and a count share the bits, the count the lowest.

-- The largest count, and the last time.
local function most_of(bits)
  if bits >= 32 then return math.ldexp(1, bits - 32) - 1, LIMB - 2 end
  return 0, math.ldexp(1, bits) - 2
end

local function last_of(bits)
  if bits >= 32 then return 0, LIMB / math.ldexp(1, bits - 32) - 1 end
  return LIMB / math.ldexp(1, bits) - 1, LIMB - 1
end

-- The time and the count of a word. A foreign one may count one more than is ever kept.
local function split(h, l, bits)
  if bits >= 32 then
    local unit = math.ldexp(1, bits - 32)
    return 0, floor(h / unit), smaller(h % unit, l, unit - 1, LIMB - 2)
  end
  local unit = math.ldexp(1, bits)
  local low = h % unit * (LIMB / unit) + floor(l / unit)
  return floor(h / unit), low, smaller(0, l % unit, 0, unit - 2)
end

-- The word of a time and a count, each cut to the largest that it has room for.
local function join(th, tl, ch, cl, bits)
  th, tl = smaller(th, tl, last_of(bits))
  ch, cl = smaller(ch, cl, most_of(bits))
  if bits >= 32 then
    return tl * math.ldexp(1, bits - 32) + ch, cl
  end
  local unit = math.ldexp(1, bits)
  local rest = LIMB / unit
  return th * unit + floor(tl / rest), tl % rest * unit + cl
end

