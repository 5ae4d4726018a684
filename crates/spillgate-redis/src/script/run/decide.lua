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
  if nh >= 1073741824 then nh, nl = 1073741823, LIMB - 1 end
end

-- What spending leaves of a bucket: as in the general functions. Most calls are this.
local function spend(layout, wh, wl, ask)
  local ph, pl, rh, rl = read('>I4I4I4I4', ask, NUMBERS)
  local th, tl = nh, nl
  if layout == STOCK then th, tl = 0, 0 end
  if wh < th or (wh == th and wl < tl) then wh, wl = th, tl end
  local spent_h, spent_l = wh - th, wl - tl
  if spent_l < 0 then spent_h, spent_l = spent_h - 1, spent_l + LIMB end
  if spent_h > rh or (spent_h == rh and spent_l > rl) then return nil end
  local h, l = wh + ph, wl + pl
  if l >= LIMB then h, l = h + 1, l - LIMB end
  return h, l, (h - th) * LIMB + l - tl
end

-- What acts otherwise, once it is needed.
local act

-- What is found of a caller; if something is to be written, that and in how many
-- milliseconds it may be forgotten; and whether nothing may be written for any.
local function decide(ask, value)
  local fh, fl, action, is_shadow, is_kept, layout = read('>I4I4BBBB', ask, 27)
  local wh, wl = fh, fl
  if not value then
    -- Only an exchange gives an override: to write one here would bring back one that was
    -- taken away.
    if byte(ask, 2) >= OVERRIDE then return write('B', 3), nil, nil, true end
    -- Who is not known has nothing to get back, and nothing to forget.
    if action == REFUND or action == GIVE_BACK or action == RESET or action == READ then
      action = LOOK
    end
  elseif action ~= READ and #value == 34 and sub(value, 1, 26) == sub(ask, 1, 26) then
    wh, wl = read('>I4I4', value, 27)
  else
    local state = sub(value, 1, LONGEST)
    return write('>BI2', 2, #state) .. state, nil, nil, action ~= READ
  end

  local h, l, idle_after
  if action == LOOK then
    return write('>BI4I4', 0, wh, wl)
  elseif action == SPEND then
    h, l, idle_after = spend(layout, wh, wl, ask)
  elseif action ~= REFUSE then
    act = act or others()
    h, l, idle_after = act(layout, action, wh, wl, nh, nl, fh, fl, ask)
  end
  if not h then
    return write('>BI4I4', 1, wh, wl), nil, nil, is_shadow == 0
  end
  -- In milliseconds. Nothing is kept for longer than there is time.
  local expiry = is_kept == 0 and math.min(math.max(idle_after, 0), 2^62) / 1000000
  local left = write('>c26I4I4', ask, h, l)
  return write('>BI4I4', 0, wh, wl), left, expiry and math.ceil(expiry) + margin
end

local function keep(key, value, expiry)
  if expiry then
    redis.call('SET', key, value, 'PX', expiry)
  else
    redis.call('SET', key, value)
  end
end

local reply = write('>I4I4', nh, nl)

if #KEYS == 1 then
  local found, left, expiry = decide(ARGV[1], redis.call('GET', KEYS[1]))
  if left then keep(KEYS[1], left, expiry) end
  return reply .. found
end

local values, expiries, is_refused = {}, {}, false
for i, key in ipairs(KEYS) do
  local value = values[key] or redis.call('GET', key)
  local found, left, expiry, refuses = decide(ARGV[i], value)
  reply = reply .. found
  is_refused = is_refused or refuses
  if left then values[key], expiries[key] = left, expiry end
end
if not is_refused then
  for key, value in pairs(values) do keep(key, value, expiries[key]) end
end
return reply
