-- One row of a block drawn at random, found by its place: one read of the device, and no index on the way, of which a
-- cache would hold more with every second. At scale 5 and 8 kB the table has 8197 blocks.
\set block random(0, 8100)
SELECT abalance FROM pgbench_accounts WHERE ctid = ('(' || :block || ',1)')::tid;
