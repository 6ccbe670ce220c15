-- What the benchmark asks of kinds of sessions, and the name of its headline.
CREATE TABLE session_goals (
    experiment BIGINT, kind VARCHAR, p90_max_ns BIGINT, share_min_percent DOUBLE, headline VARCHAR
);

-- One row per kind of session of an experiment. A transaction ends as its last try does, and a session as the worst of
-- its transactions: 0 committed, 1 rolled back as the trace asks, 2 skipped, 3 rolled back by the store, 4 failed,
-- 5 unknown.
CREATE VIEW session_kinds AS
WITH by_transaction AS (
    SELECT
        experiment, fragment, session, txn,
        min(kind) AS kind,
        bool_or(step = 0 AND NOT drained) AS begins,
        min(due_ns) AS due_ns,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
        max(CASE WHEN txn IS NULL THEN 0 ELSE "try" END * 10 + CASE
            WHEN try_end IS NULL OR try_end = 'best effort' THEN
                CASE outcome WHEN 'ok' THEN 0 WHEN 'skipped' THEN 2 WHEN 'aborted' THEN 3 WHEN 'failed' THEN 4 ELSE 5 END
            ELSE
                CASE try_end
                    WHEN 'committed' THEN 0 WHEN 'abort' THEN 1 WHEN 'skipped' THEN 2 WHEN 'aborted' THEN 3
                    WHEN 'failed' THEN 4 ELSE 5
                END
        END) % 10 AS ended
    FROM sealed_operations
    WHERE NOT warmup
    GROUP BY experiment, fragment, session, txn
),
by_session AS (
    SELECT
        experiment,
        min(kind) AS kind,
        max(ended) AS ended,
        max(end_ns) AS end_ns,
        max(end_ns) - coalesce(min(due_ns), min(start_ns)) AS response_ns
    FROM by_transaction
    GROUP BY experiment, fragment, session
    HAVING bool_or(begins)
),
by_kind AS (
    SELECT
        s.experiment,
        s.kind,
        count(*) AS sessions,
        count(*) FILTER (ended = 0) AS committed,
        count(*) FILTER (ended = 1) AS rolled_back,
        count(*) FILTER (ended = 3) AS aborted,
        count(*) FILTER (ended = 4) AS failed,
        count(*) FILTER (ended = 5) AS unknown,
        count(*) FILTER (ended = 2) AS skipped,
        count(*) FILTER (ended = 0 AND end_ns - e.measured_from_ns <= e.counted_ns) * 60e9
            / nullif(any_value(e.counted_ns), 0) AS per_minute,
        quantile_disc(response_ns, [0.5, 0.9]) FILTER (ended <= 1) AS percentiles_ns,
        max(response_ns) FILTER (ended <= 1) AS max_ns
    FROM by_session AS s
    JOIN experiments AS e ON s.experiment = e.experiment
    GROUP BY s.experiment, s.kind
)
SELECT
    k.experiment, k.kind, sessions, committed, rolled_back, aborted, failed, unknown, skipped, per_minute,
    100.0 * (committed + rolled_back) / nullif(sum(committed + rolled_back) OVER (PARTITION BY k.experiment), 0)
        AS share_percent,
    percentiles_ns[1] AS p50_ns,
    percentiles_ns[2] AS p90_ns,
    max_ns, p90_max_ns, share_min_percent, headline
FROM by_kind AS k
LEFT JOIN session_goals AS g ON k.experiment = g.experiment AND k.kind = g.kind;
