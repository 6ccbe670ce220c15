-- The same tables for a run without a sealed experiment: the columns, and no row.
CREATE TABLE operations (
    experiment BIGINT, fragment BIGINT, session BIGINT, step SMALLINT, kind VARCHAR, "action" VARCHAR, socialite BIGINT,
    target BIGINT, "comment" BIGINT, "after" BIGINT, thread INTEGER, due_ns BIGINT, start_ns BIGINT, end_ns BIGINT,
    response_ns BIGINT, waited_ns BIGINT, pool_wait_ns BIGINT, attempts SMALLINT, outcome VARCHAR, error VARCHAR,
    observed BIGINT[], unpredictable BOOLEAN, warmup BOOLEAN, drained BOOLEAN
);

CREATE TABLE unpredictable (
    experiment BIGINT, fragment BIGINT, session BIGINT, step SMALLINT, "action" VARCHAR, start_ns BIGINT,
    end_ns BIGINT, item VARCHAR, owner BIGINT, element BIGINT, observed BIGINT, low BIGINT, high BIGINT, warmup BOOLEAN, drained BOOLEAN
);
