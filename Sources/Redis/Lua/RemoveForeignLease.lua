-- Removes what stands in the place of a hub's lease and is none, so that the hub can take its name.
--
-- KEYS[1]  the lease: a hub's boot, a number of 64 bits in decimal digits
--
-- Answers 1 where it was removed, and 0 where there is a lease, or nothing.
--
-- Invariants
--   - Whoever asks has read the key before, and a hub may have taken the name since: a lease is never removed.
--   - What Redis does not let itself be asked now (it loads, it is busy, a right is missing) says nothing about the key: that error is the
--     answer, and the key stays.

local lease = redis.pcall('GET', KEYS[1])
if type(lease) == 'table' then
    if not string.find(lease.err, 'WRONGTYPE', 1, true) then return lease end
elseif not lease then
    return 0
elseif string.find(lease, '^%d+$') and (#lease < 20 or #lease == 20 and lease <= '18446744073709551615') then
    return 0
end
return redis.call('DEL', KEYS[1])
