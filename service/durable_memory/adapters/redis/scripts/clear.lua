-- Forgets the published state of a partition, but not its highest fence.
--
-- KEYS  1 the lease  2 the manifest  3 ... the segments that the manifest lists
-- ARGV  1 owner  2 fence  3 history digest of the state to forget, '' for none: a repeat that arrives late must not
--       meet the next one
--
-- Returns {1}           forgotten
--         {3, highest}  fenced: the lease is not the live one; the highest fence that is known
--         {8}           another state is published: read the manifest again

local lease, manifest = KEYS[1], KEYS[2]
local stored = redis.call('HMGET', manifest, 'history_digest', 'highest_fence')
local held = redis.call('HMGET', lease, 'owner', 'fence')
local highest = tonumber(stored[2] or '0')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] or tonumber(ARGV[2]) < highest then
  return {3, highest}
end
if (stored[1] or '') ~= ARGV[3] then
  return {8}
end
for i = 3, #KEYS do
  redis.call('UNLINK', KEYS[i])
end
redis.call('DEL', manifest)
redis.call('HSET', manifest, 'highest_fence', ARGV[2])
return {1}
