-- DuckDB's: c2e8fa0b0171
SELECT
    experiment, fragment, session, step, operation, outcome, start_ns, end_ns,
    CAST(NULL AS STRING) AS item, CAST(NULL AS BIGINT) AS owner, CAST(NULL AS BIGINT) AS element,
    CAST(NULL AS BIGINT) AS change
FROM sealed_operations WHERE false
