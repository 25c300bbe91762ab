-- What a partition's lease and manifest hold at one moment. Changes nothing.
--
-- KEYS  1 the lease  2 the manifest
-- ARGV  1 a word by which this call is found in what MONITOR tells
--
-- Returns {seconds, microseconds, lease as names and values, its PTTL, manifest as names and values}

local time = redis.call('TIME')
return {
  time[1], time[2], redis.call('HGETALL', KEYS[1]), redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[2])
}
