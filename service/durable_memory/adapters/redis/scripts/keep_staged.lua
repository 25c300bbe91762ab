-- Lets staged segments live for another while. One that is published meanwhile stays published: a repeat that arrives
-- late must not put a TTL on it.
--
-- KEYS  the segments
-- ARGV  1 TTL in milliseconds
--
-- Returns {1}  all are there
--         {3}  fenced: one of them has expired

local left = {}
for i, segment in ipairs(KEYS) do
  left[i] = redis.call('PTTL', segment)
  if left[i] == -2 then
    return {3}
  end
end
for i, segment in ipairs(KEYS) do
  if left[i] ~= -1 then
    redis.call('PEXPIRE', segment, ARGV[1])
  end
end
return {1}
