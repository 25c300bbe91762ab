-- Lets a live grant live for another while.
--
-- KEYS  1 the lease  2 the manifest, which keeps the highest fence
-- ARGV  1 owner  2 fence  3 TTL in milliseconds
--
-- Returns {1}           renewed
--         {3, highest}  fenced: this is not the live grant; the highest fence that is known

local held = redis.call('HMGET', KEYS[1], 'owner', 'fence')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] then
  return {3, tonumber(redis.call('HGET', KEYS[2], 'highest_fence') or '0')}
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1}
