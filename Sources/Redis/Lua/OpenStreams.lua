-- Opens the streams that hubs share, after each connect and before anything is written on that connection.
--
-- KEYS[1]  their head: "EPOCH COUNT REPLID SETTLED": the number of writes in the epoch, and until when it settles
-- KEYS[2]  the index (see WriteStreams.lua)
-- ARGV[1]  the least number for a new epoch: the caller's clock in milliseconds, and more than any epoch it knows
-- ARGV[2]  how many milliseconds a new epoch settles
--
-- Returns {epoch, count, milliseconds for which it still settles}, all of them texts.
--
-- Invariants
--   - An epoch belongs to one life of one primary (its replication id), as in Open.lua: whenever Redis may have lost something, there
--     is a new one.
--   - While an epoch settles, hubs write back what Redis lacks, and nothing new is accepted (WriteStreams.lua). Redis' clock decides,
--     so that settling ends for all hubs at once.
--   - A head or an index of the wrong type was put there by another program: it is removed, and with it the epoch, so that hubs write
--     back what they have.
--   - A replica returns nothing that would let a caller write.

local replication = redis.call('INFO', 'replication')
if not string.find(replication, 'role:master', 1, true) then
    return redis.error_reply('-NOTMASTER this server is a replica')
end
local replid = string.match(replication, 'master_replid:(%x+)')
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local epoch, count, owner, settled
local head = redis.pcall('GET', KEYS[1])
if type(head) == 'table' then
    if not string.find(head.err, 'WRONGTYPE', 1, true) then return head end
    head = false
end
if head then
    epoch, count, owner, settled = string.match(head, '^(%d+) (%d+) (%S+) (%d+)$')
end
-- A head that no hub can have written is invalid; so is one that settles for longer than a minute.
if epoch and (tonumber(epoch) > 2^51 or tonumber(count) > 2^51) then epoch = nil end
local index = redis.pcall('HGET', KEYS[2], '')
if type(index) == 'table' then
    if not string.find(index.err, 'WRONGTYPE', 1, true) then return index end
    redis.call('DEL', KEYS[2])
    owner = nil
end
if not epoch or owner ~= replid or tonumber(settled) > now + 60000 then
    local least = tonumber(ARGV[1])
    if epoch then least = math.max(least, tonumber(epoch) + 1) end
    epoch, count, settled = string.format('%.0f', least), '0', string.format('%.0f', now + tonumber(ARGV[2]))
    redis.call('SET', KEYS[1], epoch .. ' 0 ' .. replid .. ' ' .. settled)
end
return {epoch, count, string.format('%.0f', math.max(0, tonumber(settled) - now))}
