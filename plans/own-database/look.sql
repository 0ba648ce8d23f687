-- What a customer has ordered so far.
\set customer random(1, :customers)
SELECT o.id, o.placed, l.product, l.count
FROM orders o LEFT JOIN order_line l ON l.order_id = o.id
WHERE o.customer = :customer ORDER BY o.placed DESC LIMIT 20;
