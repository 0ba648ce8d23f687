-- Runs once, behind the restore: the sample is small, and this makes some 60 MB of it. A dump of yours needs nothing like it.
INSERT INTO customer SELECT n, 'customer ' || n FROM generate_series(101, 200000) n;
INSERT INTO product SELECT n, 'product ' || n, 1000000 FROM generate_series(101, 10000) n;
INSERT INTO orders (customer) SELECT 1 + n % 200000 FROM generate_series(1, 300000) n;
CREATE INDEX ON orders (customer);
