-- A scan of the whole table.
SELECT sum(abalance) FROM pgbench_accounts;
