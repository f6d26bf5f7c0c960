-- Appends to the logs of shared streams, removes some, and tells all hubs; each change assumes the state that the caller believes in.
--
-- KEYS[1]  the index: a hash of NAME to "ID LENGTH"; the log of a stream is the string KEYS[1]:ID
-- KEYS[2]  the head (see OpenStreams.lua)
-- ARGV[1]  the channel
-- ARGV[2]  the epoch that the caller's connection opened
-- ARGV[3]  the caller's process, for the publication
-- ARGV[4]  1 if hubs write back what Redis lacks, else 0
-- ARGV[5…] in groups of five: "w" to append, "d" to remove, or "s" to remove because the next generation follows; the stream's name;
--          its id; the expected length of its log, -1 for a stream that does not exist, or "*" for any; the bytes. Without bytes, "w"
--          only checks the expectation.
--
-- Returns for each: 1 if done, else "ID LENGTH" from the index, or an empty text.
-- It publishes "EPOCH COUNT PROCESS\n", and for each effective change two numbers of four bytes (little-endian), the lengths of a line
-- "KIND ID LENGTH-BEFORE NAME" and of the bytes, followed by both.
--
-- Invariants
--   - In another epoch than the caller's, or without a head, nothing is written: -EPOCH. While the epoch settles, only what is
--     written back is accepted: -SETTLING.
--   - A log grows only if its stream and length are those on which the caller decided. So of two hubs that decide at once, one is told
--     that it was late, and within an epoch all copies of a stream's log are prefixes of one another.
--   - Index, logs, count and publication change in one step for all other clients.
--   - A log that is missing, or not as long as the index says, was damaged by another program. It is removed, and with it the epoch, so
--     that hubs write back what they have. So is the head if it, or the index, is of the wrong type (see OpenStreams.lua).

local epoch, count, owner, settled
local head = redis.pcall('GET', KEYS[2])
if type(head) == 'table' then
    if not string.find(head.err, 'WRONGTYPE', 1, true) then return head end
    head = false
end
if head then
    epoch, count, owner, settled = string.match(head, '^(%d+) (%d+) (%S+) (%d+)$')
end
-- A head that no hub can have written is invalid (see OpenStreams.lua).
if epoch and tonumber(count) > 2^51 then epoch = nil end
if epoch ~= ARGV[2] then
    return redis.error_reply('-EPOCH ' .. (epoch or 'none') .. ' is the epoch of the streams')
end
if ARGV[4] ~= '1' then
    local time = redis.call('TIME')
    if tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) < tonumber(settled) then
        return redis.error_reply('-SETTLING hubs write back what they have')
    end
end

local index = redis.pcall('HGET', KEYS[1], '')
if type(index) == 'table' then
    if not string.find(index.err, 'WRONGTYPE', 1, true) then return index end
    redis.call('DEL', KEYS[2])
    return redis.error_reply('-EPOCH none is the epoch of the streams: their index was damaged')
end

local answers, published = {}, {}
for at = 5, #ARGV, 5 do
    local kind, name, id, length, bytes = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
    local found = redis.call('HGET', KEYS[1], name) or ''
    local is_right
    if length == '-1' then
        is_right = found == ''
    elseif length == '*' then
        is_right = string.sub(found, 1, #id + 1) == id .. ' '
    else
        is_right = found == id .. ' ' .. length
    end
    local log = KEYS[1] .. ':' .. id
    if not is_right then
        answers[#answers + 1] = found
    elseif kind ~= 'w' then
        redis.call('HDEL', KEYS[1], name)
        redis.call('DEL', log)
        answers[#answers + 1] = 1
    else
        if #bytes > 0 then
            local expected = math.max(0, tonumber(length)) + #bytes
            local appended = redis.pcall('APPEND', log, bytes)
            if type(appended) == 'table' and not string.find(appended.err, 'WRONGTYPE', 1, true) then return appended end
            if appended ~= expected then
                redis.call('DEL', log, KEYS[2])
                redis.call('HDEL', KEYS[1], name)
                return redis.error_reply('-EPOCH none is the epoch of the streams: a log was damaged')
            end
            redis.call('HSET', KEYS[1], name, id .. ' ' .. string.format('%.0f', expected))
        end
        answers[#answers + 1] = 1
    end
    if is_right and (kind ~= 'w' or #bytes > 0) then
        local line = kind .. ' ' .. id .. ' ' .. length .. ' ' .. name
        published[#published + 1] = struct.pack('<I4I4', #line, #bytes) .. line .. bytes
    end
end
if #published > 0 then
    local next_count = string.format('%.0f', tonumber(count) + 1)
    redis.call('SET', KEYS[2], epoch .. ' ' .. next_count .. ' ' .. owner .. ' ' .. settled)
    redis.call('PUBLISH', ARGV[1], epoch .. ' ' .. next_count .. ' ' .. ARGV[3] .. '\n' .. table.concat(published))
end
return answers
