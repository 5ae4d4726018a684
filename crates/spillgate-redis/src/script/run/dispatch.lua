-- The word that an action leaves, nil if it is denied, and the nanoseconds until nothing is
-- spent any more, about.
return function(layout, action, wh, wl, nh, nl, fh, fl, ask)
  if layout == BUCKET then
    local h, l = bucket(action, wh, wl, nh, nl, ask)
    return h, l, h and (h - nh) * LIMB + l - nl
  elseif layout == STOCK then
    return bucket(action, wh, wl, 0, 0, ask)
  elseif layout == INTERVAL_BUCKET then
    return interval_bucket(action, wh, wl, nh, nl, fh, fl, ask)
  elseif layout == FIXED_WINDOW then
    return fixed_window(action, wh, wl, nh, nl, ask)
  end
  return sliding_window(action, wh, wl, nh, nl, ask)
end
