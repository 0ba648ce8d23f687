-- A scan of a bitmap: pages all over the table, in the order in which they lie.
SELECT sum(abalance) FROM pgbench_accounts WHERE aid = ANY (ARRAY(SELECT (random() * 300000)::int FROM generate_series(1, 1000)));
