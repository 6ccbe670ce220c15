-- DuckDB's: 04eeab3ff033
SELECT
    experiment, fragment, session, step, start_ns, warmup, drained,
    CAST(NULL AS STRING) AS item, CAST(NULL AS BIGINT) AS owner, CAST(NULL AS BIGINT) AS element,
    CAST(NULL AS STRING) AS unit
FROM sealed_operations WHERE false
