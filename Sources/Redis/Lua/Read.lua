-- Reads entries of the log that hubs share, oldest first: as many as fit into one answer.
--
-- KEYS[1]  the log (see Open.lua)
-- ARGV[1]  the first id, or "(" and the id before it; ARGV[2]  the last id, or "+"
-- ARGV[3]  how many entries at most; ARGV[4]  after how many bytes no other one is added
--
-- Answers {1 where the last id was reached, else 0, {entry …}}, each entry as XRANGE answers it.
--
-- Invariants
--   - Without holes: whoever asks again after the last entry misses none that is there.
--   - Entries differ in size by far. An answer has at least one, where there is one, and is larger than ARGV[4] by less than one
--     entry; so what is asked for in vain once for being too large is never asked for again and again.

local most, limit = tonumber(ARGV[3]), tonumber(ARGV[4])
local entries, size, from = {}, 0, ARGV[1]
while true do
    -- A few at a time: what does not fit is read in vain.
    local piece = redis.call('XRANGE', KEYS[1], from, ARGV[2], 'COUNT', 4)
    for _, entry in ipairs(piece) do
        if #entries >= most or size >= limit then return {0, entries} end
        entries[#entries + 1] = entry
        for _, field in ipairs(entry[2]) do size = size + #field end
    end
    if #piece < 4 then return {1, entries} end
    from = '(' .. piece[4][1]
end
