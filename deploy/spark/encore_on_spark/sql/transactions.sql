-- DuckDB's: 9c1bbc1c94e5
SELECT
    experiment,
    fragment,
    session,
    txn,
    try,
    min(thread) AS thread,
    min(start_ns) AS start_ns,
    max(end_ns) AS end_ns,
    max(end_ns - start_ns) FILTER (WHERE operation = 'begin') AS begin_ns,
    max(end_ns - start_ns) FILTER (WHERE operation IN ('commit', 'abort')) AS commit_ns,
    count(*) FILTER (WHERE counts_as <> 'nothing') AS operations,
    min(try_end) AS outcome,
    bool_or(warmup) AS warmup,
    bool_or(drained) AS drained
FROM sealed_operations
WHERE txn IS NOT NULL
GROUP BY experiment, fragment, session, txn, try
