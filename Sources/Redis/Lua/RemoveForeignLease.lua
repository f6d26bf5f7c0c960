-- Removes a foreign value in place of a hub's lease, so that the hub can take its name.
--
-- KEYS[1]  the lease: a hub's boot, a number of 64 bits in decimal digits
--
-- Returns 1 if a value was removed, and 0 if there is a lease, or nothing.
--
-- Invariants
--   - The caller read the key before, and a hub may have taken the name since: a lease is never removed.
--   - If Redis cannot answer now (it is loading, it is busy, a permission is missing), that says nothing about the key: the error is
--     returned, and the key stays.

local lease = redis.pcall('GET', KEYS[1])
if type(lease) == 'table' then
    if not string.find(lease.err, 'WRONGTYPE', 1, true) then return lease end
elseif not lease then
    return 0
elseif string.find(lease, '^%d+$') and (#lease < 20 or #lease == 20 and lease <= '18446744073709551615') then
    return 0
end
return redis.call('DEL', KEYS[1])
