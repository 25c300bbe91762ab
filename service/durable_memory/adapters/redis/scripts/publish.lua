-- Replaces the published state of a partition, if everything that it was derived from still holds.
--
-- KEYS  1 the lease  2 the manifest  3 ... the segments listed, in order, then those replaced
-- ARGV  1 owner  2 fence  3 nonce
--       4 expected index revision, 0 for none  5 its history digest
--       6 descriptor  7 grace of replaced segments in milliseconds
--       8 n, how many segments are listed; then n pairs: length in bytes, checksum (the last 32 bytes)
--       then pairs: name and value of each field of the new manifest
--
-- Returns {1}               published
--         {3, highest}      fenced: the lease is not the live one; the highest fence that is known
--         {4, revision}     the index is at another revision
--         {5, descriptor}   the partition has another descriptor
--         {6, i}            the i-th listed segment is not there with its length and checksum
--         {7, field, ...}   published before with this nonce: the manifest's names and values
--         {8}               the expected revision, but with another history: read the manifest again

local lease, manifest = KEYS[1], KEYS[2]
local stored = redis.call(
  'HMGET', manifest, 'nonce', 'index_revision', 'history_digest', 'descriptor', 'highest_fence'
)
if stored[1] == ARGV[3] then
  return {7, unpack(redis.call('HGETALL', manifest))}
end

local held = redis.call('HMGET', lease, 'owner', 'fence')
local highest = tonumber(stored[5] or '0')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] or tonumber(ARGV[2]) < highest then
  return {3, highest}
end

local revision = tonumber(stored[2] or '0')
if revision ~= tonumber(ARGV[4]) then
  return {4, revision}
end
if stored[3] and stored[3] ~= ARGV[5] then
  return {8}
end
if stored[4] and stored[4] ~= ARGV[6] then
  return {5, stored[4]}
end

local count = tonumber(ARGV[8])
for i = 1, count do
  local segment = KEYS[2 + i]
  if redis.call('STRLEN', segment) ~= tonumber(ARGV[7 + 2 * i])
    or redis.call('GETRANGE', segment, -32, -1) ~= ARGV[8 + 2 * i] then
    return {6, i}
  end
end

-- Nothing was written until here.
for i = 3, 2 + count do
  redis.call('PERSIST', KEYS[i])
end
for i = 3 + count, #KEYS do
  redis.call('PEXPIRE', KEYS[i], ARGV[7])
end
redis.call('HSET', manifest, 'highest_fence', ARGV[2], unpack(ARGV, 9 + 2 * count))
return {1}
