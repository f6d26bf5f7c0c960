-- Opens the log that hubs share, after each connect and before anything is written on that connection.
--
-- KEYS[1]  the log: a stream whose ids are EPOCH-OFFSET, with offsets dense from 0 within an epoch
-- KEYS[2]  its head: "EPOCH OFFSET REPLID TAG", then " EPOCH-OFFSET" for the last entry of each older epoch, newest first
-- ARGV[1]  the least number for a new epoch: the caller's clock in milliseconds, and more than any epoch it knows
--
-- Returns {epoch, offset of the last entry or -1, its tag, older heads …}, all of them texts.
--
-- Invariants
--   - An epoch belongs to one life of one primary (its replication id): a new primary, a restart and a lost head each begin a new
--     one. So no two servers ever write the same epoch.
--   - A new epoch is greater than any that the head or the log knows: XADD never meets a greater id.
--   - Every epoch leaves its last entry among the older heads, so that readers know how far to read it; one without entries
--     leaves EPOCH--1.
--   - A replica returns nothing that would let a caller write.
--   - A head that no hub can have written counts as lost, together with its older heads, and a log that ends in such an id is
--     deleted, because nothing could be added to it. The least new epoch stays far below the limit of hubs (2^52).
--   - A head or a log of the wrong type was put there by another program: it counts as lost, and is replaced.
--   - If the epoch continues, nothing is written, so the log opens even on a server that is full.

local replication = redis.call('INFO', 'replication')
if not string.find(replication, 'role:master', 1, true) then
    return redis.error_reply('-NOTMASTER this server is a replica')
end
local replid = string.match(replication, 'master_replid:(%x+)')

local function is_place(epoch, offset)
    return tonumber(epoch) <= 2^51 and tonumber(offset) >= -1 and tonumber(offset) < 2^40
end

local epoch, offset, owner, tag, older
local head = redis.pcall('GET', KEYS[2])
if type(head) == 'table' then
    if not string.find(head.err, 'WRONGTYPE', 1, true) then return head end
    head = false
end
if head then
    epoch, offset, owner, tag, older = string.match(head, '^(%d+) (-?%d+) (%S+) (%x+)(.*)$')
    if not epoch or not is_place(epoch, offset) or string.find(tag, '%D') or tonumber(tag) > 2^64 then
        epoch, older = nil, nil
    else
        local count = 0
        for id in string.gmatch(older, '%S+') do
            local old_epoch, old_offset = string.match(id, '^(%d+)-(-?%d+)$')
            count = count + 1
            if not old_epoch or not is_place(old_epoch, old_offset) or count > 16 then epoch = nil end
        end
        if not epoch then older = nil end
    end
end

local ends = redis.pcall('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
if ends.err then
    if not string.find(ends.err, 'WRONGTYPE', 1, true) then return ends end
    redis.call('DEL', KEYS[1])
    -- Its entries are gone, so the epoch ends here.
    ends, owner = {}, nil
end

local answer
if epoch and owner == replid then
    answer = {epoch, offset, tag}
else
    local least = tonumber(ARGV[1])
    older = older or ''
    if epoch then
        least = math.max(least, tonumber(epoch) + 1)
        older = ' ' .. epoch .. '-' .. offset .. older
    end
    -- A head can be lost without its log, by eviction or by hand.
    local last = ends[1]
    if last then
        local last_epoch, last_offset = string.match(last[1], '^(%d+)-(%d+)')
        if not is_place(last_epoch, '0') then
            redis.call('DEL', KEYS[1])
        else
            least = math.max(least, tonumber(last_epoch) + 1)
            if not epoch and is_place(last_epoch, last_offset) then older = ' ' .. last[1] end
        end
    end
    local kept = {}
    for id in string.gmatch(older, '%S+') do
        if #kept < 16 then kept[#kept + 1] = ' ' .. id end
    end
    older = table.concat(kept)
    answer = {string.format('%.0f', least), '-1', '0'}
    redis.call('SET', KEYS[2], answer[1] .. ' -1 ' .. replid .. ' 0' .. older)
end
for id in string.gmatch(older, '%S+') do answer[#answer + 1] = id end
return answer
