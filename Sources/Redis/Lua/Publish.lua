-- Appends one entry to the log that hubs share, and publishes it.
--
-- KEYS[1]  the log, KEYS[2] its head (see Open.lua)
-- ARGV[1]  the channel
-- ARGV[2]  the epoch that the caller's connection opened
-- ARGV[3]  the entry's tag: a random number in decimal digits, which distinguishes a rewritten log from a repeated one
-- ARGV[4]  the approximate number of entries that the log keeps
-- ARGV[5]  the entry
--
-- Returns the entry's offset. It publishes "EPOCH OFFSET TAG-OF-THE-ENTRY-BEFORE TAG\n" and the entry.
--
-- Invariants
--   - In another epoch than the caller's, or without a head, nothing is written: -EPOCH, with the current epoch.
--   - Log, head and publication change in one step for all other clients, and the head is that of the log's last entry.
--   - A head that lies before the end of its log, or beyond the limits of hubs (see Open.lua), is removed, so that the next opening
--     begins an epoch. So is the head of a log that accepts nothing, because another program put a key of the wrong type there, or an
--     entry with the last possible id. A log that does not even accept the first entry of an epoch is deleted.
--   - Each entry names the tag of the one before, taken from the head; the first of an epoch names 0.

local epoch, offset, owner, tag, older
local head = redis.pcall('GET', KEYS[2])
if type(head) == 'table' then
    if not string.find(head.err, 'WRONGTYPE', 1, true) then return head end
    head = false
end
if head then
    epoch, offset, owner, tag, older = string.match(head, '^(%d+) (-?%d+) (%S+) (%x+)(.*)$')
end
-- A head that no hub can have written is invalid (see Open.lua).
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
    -- The opening checked the log's last entry: the obstacle is the id of an entry that is no longer there.
    if next_offset == '0' then redis.call('DEL', KEYS[1]) end
    return redis.error_reply('-EPOCH none is the epoch of the log: its head was damaged')
end
redis.call('SET', KEYS[2], epoch .. ' ' .. next_offset .. ' ' .. owner .. ' ' .. ARGV[3] .. older)
redis.call('PUBLISH', ARGV[1], epoch .. ' ' .. next_offset .. ' ' .. tag .. ' ' .. ARGV[3] .. '\n' .. ARGV[5])
return tonumber(next_offset)
