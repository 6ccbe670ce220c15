-- DuckDB's: 564a54c81132
SELECT
    experiment, fragment, session, step, thread, actor, start_ns, end_ns, warmup, drained,
    '' AS item, 0L AS owner, CAST(NULL AS BIGINT) AS element, 0L AS value, false AS absent
FROM sealed_operations
WHERE false
