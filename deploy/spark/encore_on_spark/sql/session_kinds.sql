-- DuckDB's: e1314a5ea808
WITH by_transaction AS (
    SELECT
        experiment, fragment, session, txn,
        min(kind) AS kind,
        bool_or(step = 0 AND NOT drained) AS begins,
        min(due_ns) AS due_ns,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
        max(CASE WHEN txn IS NULL THEN 0 ELSE try END * 10 + CASE
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
        count(*) FILTER (WHERE ended = 0) AS committed,
        count(*) FILTER (WHERE ended = 1) AS rolled_back,
        count(*) FILTER (WHERE ended = 3) AS aborted,
        count(*) FILTER (WHERE ended = 4) AS failed,
        count(*) FILTER (WHERE ended = 5) AS unknown,
        count(*) FILTER (WHERE ended = 2) AS skipped,
        count(*) FILTER (WHERE ended = 0 AND end_ns - e.measured_from_ns <= e.counted_ns) * 60e9
            / nullif(any_value(e.counted_ns), 0) AS per_minute,
        max(response_ns) FILTER (WHERE ended <= 1) AS max_ns
    FROM by_session AS s
    JOIN experiments AS e ON s.experiment = e.experiment
    GROUP BY s.experiment, s.kind
),
-- Percentiles from counts of equal values, as in timeline.
times AS (
    SELECT
        experiment, kind, response_ns,
        sum(n) OVER (PARTITION BY experiment, kind ORDER BY response_ns ROWS UNBOUNDED PRECEDING) AS so_far,
        sum(n) OVER (PARTITION BY experiment, kind) AS total
    FROM (
        SELECT experiment, kind, response_ns, count(*) AS n
        FROM by_session
        WHERE ended <= 1
        GROUP BY experiment, kind, response_ns
    )
),
percentiles AS (
    SELECT
        experiment, kind,
        min(response_ns) FILTER (WHERE 100 * so_far >= 50 * total) AS p50_ns,
        min(response_ns) FILTER (WHERE 100 * so_far >= 90 * total) AS p90_ns
    FROM times
    GROUP BY experiment, kind
)
SELECT
    k.experiment, k.kind, sessions, committed, rolled_back, aborted, failed, unknown, skipped, per_minute,
    100.0D * (committed + rolled_back) / nullif(sum(committed + rolled_back) OVER (PARTITION BY k.experiment), 0)
        AS share_percent,
    p.p50_ns,
    p.p90_ns,
    max_ns, p90_max_ns, share_min_percent, headline
FROM by_kind AS k
LEFT JOIN percentiles AS p ON k.experiment = p.experiment AND k.kind = p.kind
LEFT JOIN session_goals AS g ON k.experiment = g.experiment AND k.kind = g.kind
