-- Grants a lease, unless another grant lives.
--
-- KEYS  1 the lease  2 the manifest, which keeps the highest fence
-- ARGV  1 owner  2 nonce  3 TTL in milliseconds  4 floor: the fence has to be above it
--
-- Returns {1, fence}         granted; a repeat with the same owner and nonce has the same fence, and its TTL begins anew
--         {2, milliseconds}  held: another grant lives for so long

local lease, manifest = KEYS[1], KEYS[2]
local floor = tonumber(ARGV[4])

local held = redis.call('HMGET', lease, 'owner', 'nonce', 'fence')
if held[1] then
  if held[1] == ARGV[1] and held[2] == ARGV[2] and tonumber(held[3]) > floor then
    redis.call('PEXPIRE', lease, ARGV[3])
    return {1, tonumber(held[3])}
  end
  return {2, redis.call('PTTL', lease)}
end

local highest = tonumber(redis.call('HGET', manifest, 'highest_fence') or '0')
local fence = math.max(highest, floor) + 1
local text = string.format('%.0f', fence)
local time = redis.call('TIME')
redis.call('HSET', manifest, 'highest_fence', text)
redis.call('HSET', lease, 'owner', ARGV[1], 'nonce', ARGV[2], 'fence', text, 'granted_at', time[1])
redis.call('PEXPIRE', lease, ARGV[3])
return {1, fence}
