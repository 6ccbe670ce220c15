-- DuckDB's: 316754bcfe94
SELECT
    experiment,
    fragment,
    session,
    min(kind) AS kind,
    min(actor) AS actor,
    min(thread) AS thread,
    count(*) FILTER (WHERE counts_as <> 'nothing' AND try = 0) AS operations,
    min(start_ns) AS start_ns,
    max(end_ns) AS end_ns,
    max(end_ns) - min(start_ns) AS duration_ns,
    -- DuckDB ignores rows without try_end, and of rows with the same try it takes the first.
    bool_and(counts_as IN ('ok', 'aborted', 'nothing')) AND coalesce(
        max_by(try_end, CASE WHEN try_end IS NOT NULL THEN struct(try, -start_ns, -end_ns, -step) END), 'committed'
    ) <> 'aborted' AS all_ok,
    bool_or(outcome = 'failed') AS any_failed,
    bool_or(outcome = 'unknown') AS any_unknown,
    bool_or(outcome = 'skipped') AS any_skipped,
    bool_or(counts_as = 'aborted') AS any_aborted,
    bool_or(unpredictable) AS any_unpredictable,
    bool_or(warmup) AS warmup,
    min(due_ns) AS due_ns,
    max(end_ns) - coalesce(min(due_ns), min(start_ns)) AS response_ns
FROM sealed_operations
GROUP BY experiment, fragment, session
