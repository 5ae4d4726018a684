-- The margin by which a state outlives what is spent, in milliseconds: a clock that steps
-- back by less forgives nobody.
local margin = 1000
local nh, nl

if ARGV[#KEYS + 1] then
  local high, low
  nh, nl, high, low = read('>I4I4I4I4', ARGV[#KEYS + 1])
  margin = high * LIMB + low
else
  local time = redis.call('TIME')
  local micros = time[1] * 1000000 + time[2]
  local low = micros % LIMB * 1000
  nh, nl = floor(micros / LIMB) * 1000 + floor(low / LIMB), low % LIMB
  -- Time ends at 2^62, in the year 2116.
  nh, nl = smaller(nh, nl, 1073741823, LIMB - 1)
end

local makers = {
  [INTERVAL_BUCKET] = interval_bucket_layout,
  [FIXED_WINDOW] = fixed_window_layout,
  [SLIDING_WINDOW] = sliding_window_layout,
}

-- The word that an action leaves, nil if it is denied, and the nanoseconds until nothing is
-- spent any more.
local function act(layout, action, wh, wl, fh, fl, ask)
  if layout == BUCKET then
    local h, l = bucket(action, wh, wl, nh, nl, ask)
    return h, l, h and (h - nh) * LIMB + l - nl
  elseif layout == STOCK then
    return bucket(action, wh, wl, 0, 0, ask)
  end
  return makers[layout](nh, nl)(action, wh, wl, fh, fl, ask)
end

-- In how many milliseconds a state may be forgotten. None is kept for longer than there is
-- time.
local function expiry(idle_after)
  return math.ceil(math.min(math.max(idle_after, 0), 2^62) / 1000000) + margin
end

local reply, values, expiries = { write('>I4I4', nh, nl) }, {}, {}
local is_refused = false

for i, key in ipairs(KEYS) do
  local ask = ARGV[i]
  local terms = string.sub(ask, 1, 26)
  local fh, fl, action, is_shadow, is_kept, layout = read('>I4I4BBBB', ask, 27)
  local value = values[key] or redis.call('GET', key)
  local wh, wl = fh, fl
  if not value then
    -- Who is not known has nothing to get back, and nothing to forget.
    if action == REFUND or action == RESET then action = LOOK end
  elseif #value == 34 and string.sub(value, 1, 26) == terms then
    wh, wl = read('>I4I4', value, 27)
  else
    local state = string.sub(value, 1, 255)
    reply[i + 1] = write('BB', 2, #state) .. state
    is_refused = true
    action = nil
  end

  if action then
    local is_denied = action == REFUSE
    if action ~= LOOK and not is_denied then
      local h, l, idle_after = act(layout, action, wh, wl, fh, fl, ask)
      is_denied = not h
      if h then
        values[key] = terms .. write('>I4I4', h, l)
        expiries[key] = is_kept == 0 and expiry(idle_after)
      end
    end
    if is_denied and is_shadow == 0 then is_refused = true end
    reply[i + 1] = write('>BI4I4', is_denied and 1 or 0, wh, wl)
  end
end

if not is_refused then
  for key, value in pairs(values) do
    if expiries[key] then
      redis.call('SET', key, value, 'PX', expiries[key])
    else
      redis.call('SET', key, value)
    end
  end
end

return table.concat(reply)
