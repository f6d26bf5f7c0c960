-- Appends one entry to the log that hubs share, and publishes it.
--
-- KEYS[1]  the log, KEYS[2] its head (see Open.lua)
-- ARGV[1]  the channel
-- ARGV[2]  the epoch that the caller's connection opened
-- ARGV[3]  the entry's tag: a random number in decimal digits, so that a rewritten log is told from a repeated one
-- ARGV[4]  how many entries the log keeps, about
-- ARGV[5]  the entry
--
-- Answers the entry's offset. What is published is "EPOCH OFFSET TAG-OF-THE-ONE-BEFORE TAG\n" and the entry.
--
-- Invariants
--   - In another epoch than the caller's, and where there is no head, nothing is written: -EPOCH, with the epoch that is.
--   - Log, head and publication are one step for everybody else, and the head is that of the log's last entry.
--   - A head that lies before the end of its log, or beyond what hubs count (see Open.lua), goes, so that the next opening begins an epoch.
--     So does the head of a log that takes nothing: because somebody else put a key of another type there, or an entry with the last id
--     that there can be. A log that does not take even the first entry of an epoch is deleted.
--   - Each entry names the tag of the one before, from the head; the first of an epoch names 0.

local epoch, offset, owner, tag, older
local head = redis.pcall('GET', KEYS[2])
if type(head) == 'table' then
    if not string.find(head.err, 'WRONGTYPE', 1, true) then return head end
    head = false
end
if head then
    epoch, offset, owner, tag, older = string.match(head, '^(%d+) (-?%d+) (%S+) (%x+)(.*)$')
end
-- What nobody who counts can have written is no head (see Open.lua).
if epoch and (tonumber(offset) < -1 or tonumber(offset) >= 2^40 or string.find(tag, '%D') or tonumber(tag) > 2^64) then epoch = nil end
if epoch ~= ARGV[2] then
    return redis.error_reply('-EPOCH ' .. (epoch or 'none') .. ' is the epoch of the log')
end

local next_offset = string.format('%.0f', tonumber(offset) + 1)
local added = redis.pcall(
    'XADD', KEYS[1], 'MAXLEN', '~', ARGV[4], epoch .. '-' .. next_offset, 'p', tag, 't', ARGV[3], 'b', ARGV[5])
if added.err then
    local function is(text) return string.find(added.err, text, 1, true) end
    if not is('equal or smaller') and not is('last possible ID') and not is('WRONGTYPE') then return added end
    redis.call('DEL', KEYS[2])
    -- An opening looked at what the log has: what is in the way was there and is not any more.
    if next_offset == '0' then redis.call('DEL', KEYS[1]) end
    return redis.error_reply('-EPOCH none is the epoch of the log: its head was damaged')
end
redis.call('SET', KEYS[2], epoch .. ' ' .. next_offset .. ' ' .. owner .. ' ' .. ARGV[3] .. older)
redis.call('PUBLISH', ARGV[1], epoch .. ' ' .. next_offset .. ' ' .. tag .. ' ' .. ARGV[3] .. '\n' .. ARGV[5])
return tonumber(next_offset)
