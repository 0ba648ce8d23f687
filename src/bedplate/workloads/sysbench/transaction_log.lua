-- One of sysbench's own scripts, with a log of its transactions as pgbench writes it:
--     thread number latency_us 0 second microseconds
-- A line costs 0.4 us of the client's time (docs/METHOD.md). Latency includes what sysbench begins again after a
-- deadlock, as sysbench's own does.
local ffi = require("ffi")
ffi.cdef[[
struct bedplate_timespec { long s; long ns; };
int clock_gettime(int clock, struct bedplate_timespec *now);
]]
dofile(os.getenv("BEDPLATE_SCRIPT"))

local REALTIME, MONOTONIC, BUFFER_BYTES = 0, 1, 4096
local prefix = os.getenv("BEDPLATE_LOG")
local inner, enter, leave = event, thread_init, thread_done
local now = ffi.new("struct bedplate_timespec")
local log, number, began = nil, 0, nil

local function us(clock)
   ffi.C.clock_gettime(clock, now)
   return tonumber(now.s) * 1000000 + math.floor(tonumber(now.ns) / 1000)
end

function thread_init(id)
   if enter then enter(id) end
   log = assert(io.open(prefix .. "." .. id, "w"))
   log:setvbuf("full", BUFFER_BYTES)
end

function event(id)
   if not began then began = us(MONOTONIC) end
   local ended = inner(id)
   local latency_us = us(MONOTONIC) - began
   began = nil
   number = number + 1
   ffi.C.clock_gettime(REALTIME, now)
   log:write(id, " ", number, " ", latency_us, " 0 ", tonumber(now.s), " ", math.floor(tonumber(now.ns) / 1000), "\n")
   return ended
end

function thread_done(id)
   log:close()
   if leave then leave(id) end
end
