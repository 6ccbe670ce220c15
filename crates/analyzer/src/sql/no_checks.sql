-- No conditions of the data were checked.
CREATE TABLE checks (
    experiment BIGINT, name VARCHAR, title VARCHAR, outcome VARCHAR, violations BIGINT, first_rows VARCHAR[],
    error VARCHAR, took_ns BIGINT
);
