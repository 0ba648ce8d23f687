-- The database of plans/own-database.toml, in place of yours. shop.dump was made of it with PostgreSQL 18:
--   createdb shop && psql --file=shop.sql shop && pg_dump --format=custom --file=shop.dump shop

CREATE TABLE customer (
    id int PRIMARY KEY,
    name text NOT NULL,
    orders int NOT NULL DEFAULT 0
);

CREATE TABLE product (
    id int PRIMARY KEY,
    name text NOT NULL,
    stock int NOT NULL
);

CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer int NOT NULL REFERENCES customer,
    placed timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE order_line (
    order_id bigint NOT NULL REFERENCES orders,
    product int NOT NULL REFERENCES product,
    count int NOT NULL,
    PRIMARY KEY (order_id, product)
);

INSERT INTO customer SELECT n, 'customer ' || n FROM generate_series(1, 100) n;
INSERT INTO product SELECT n, 'product ' || n, 1000000 FROM generate_series(1, 100) n;
