-- Reads entries of the log that hubs share, oldest first: as many as fit into one answer.
--
-- KEYS[1]  the log (see Open.lua)
-- ARGV[1]  the first id, or "(" and the id before it; ARGV[2]  the last id, or "+"
-- ARGV[3]  the most entries; ARGV[4]  the bytes after which no further entry is added
--
-- Returns {1 if the last id was reached, else 0, {entry …}}, each entry in the form of XRANGE.
--
-- Invariants
--   - No gaps: a caller that continues after the last entry misses none that exist.
--   - Entries vary greatly in size. An answer has at least one entry if there is one, and exceeds ARGV[4] by less than one entry; so a
--     caller never repeats a request in vain because its answer is too large.

local most, limit = tonumber(ARGV[3]), tonumber(ARGV[4])
local entries, size, from = {}, 0, ARGV[1]
while true do
    -- A few at a time, because entries that do not fit are read in vain.
    local piece = redis.call('XRANGE', KEYS[1], from, ARGV[2], 'COUNT', 4)
    for _, entry in ipairs(piece) do
        if #entries >= most or size >= limit then return {0, entries} end
        entries[#entries + 1] = entry
        for _, field in ipairs(entry[2]) do size = size + #field end
    end
    if #piece < 4 then return {1, entries} end
    from = '(' .. piece[4][1]
end
