-- Ends a grant if it is the live one; otherwise changes nothing.
--
-- KEYS  1 the lease
-- ARGV  1 owner  2 fence
--
-- Returns {1}

local held = redis.call('HMGET', KEYS[1], 'owner', 'fence')
if held[1] == ARGV[1] and held[2] == ARGV[2] then
  redis.call('DEL', KEYS[1])
end
return {1}
