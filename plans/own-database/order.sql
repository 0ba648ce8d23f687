-- A customer buys one thing: two rows are new, two change.
\set customer random(1, :customers)
\set product random_zipfian(1, :products, 1.05)
BEGIN;
INSERT INTO orders (customer) VALUES (:customer) RETURNING id AS order_id \gset
INSERT INTO order_line VALUES (:order_id, :product, 1);
UPDATE product SET stock = stock - 1 WHERE id = :product;
UPDATE customer SET orders = orders + 1 WHERE id = :customer;
COMMIT;
