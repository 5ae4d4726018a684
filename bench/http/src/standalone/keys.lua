-- For wrk: requests with one of a hundred thousand random keys each.
--
--   wrk -s keys.lua URL -- METHOD PATH [BODY [HEADER...]]
--
-- In BODY or in one HEADER, KEY stands for a text as redis-benchmark makes them, or ADDRESS
-- for an address. All keys are of one length, so that a request is made by putting one
-- between two texts that are always the same: what the client does should be little, and
-- the same for every server. It may not be done beforehand: wrk does not measure while it
-- calls init, but the threads for which it has are already asking.

local KEYS = 100000

local forms = {
    KEY = function(number)
        return string.format("key:%012d", number)
    end,
    ADDRESS = function(number)
        local low, middle = number % 100, math.floor(number / 100) % 100
        return string.format("10.%d.%d.%d", 100 + number / 10000, 100 + middle, 100 + low)
    end,
}

local threads = 0
local before, after, form

function setup(thread)
    threads = threads + 1
    thread:set("number", threads)
end

function init(args)
    math.randomseed(number)
    local place = function(text)
        for name, make in pairs(forms) do
            if text:find(name, 1, true) then
                form = make
                text = text:gsub(name, make(0))
            end
        end
        return text
    end
    local headers = { Host = wrk.headers["Host"] }
    for index = 4, #args do
        local name, value = args[index]:match("^(.-): (.*)$")
        headers[name] = place(value)
    end
    local body = args[3] ~= "" and place(args[3]) or nil
    local request = wrk.format(args[1], args[2], headers, body)
    local first, last = request:find(form(0), 1, true)
    before, after = request:sub(1, first - 1), request:sub(last + 1)
end

function request()
    return before .. form(math.random(0, KEYS - 1)) .. after
end
