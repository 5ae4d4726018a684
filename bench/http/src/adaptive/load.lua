-- Asks a service at a pace that does not depend on its answers: each connection waits for a
-- random time (exponential) before its next request. Every request carries the time at which
-- it was sent, which the service sends back, so that latencies are those that a client sees.
--
--   wrk … -s load.lua URL -- FILE MEAN
--
-- FILE gets a line for each event: `s TIME` for a request, `r TIME STATUS LATENCY` for a response, in
-- microseconds; the latency is missing if the response does not have the time of its request. MEAN is the mean pause in
-- milliseconds, 0 for none.

local ffi = require("ffi")
ffi.cdef [[
typedef struct { long seconds; long nanos; } spillgate_time;
int clock_gettime(int clock, spillgate_time *time);
]]
local MONOTONIC = 1
local time = ffi.new("spillgate_time")
local out, mean

local function now()
    ffi.C.clock_gettime(MONOTONIC, time)
    return tonumber(time.seconds) * 1000000 + math.floor(tonumber(time.nanos) / 1000)
end

function init(args)
    out = io.open(args[1], "w")
    out:setvbuf("line")
    mean = tonumber(args[2])
    math.randomseed(now() % 1000000007)
end

function delay()
    return -mean * math.log(1 - math.random())
end

function request()
    local text = string.format("%.0f", now())
    out:write("s ", text, "\n")
    return wrk.format("GET", wrk.path .. "?" .. text)
end

function response(status, headers, body)
    local time = now()
    local sent = tonumber(body)
    local latency = sent and string.format("%.0f", time - sent) or ""
    out:write(string.format("r %.0f %d %s\n", time, status, latency))
end
