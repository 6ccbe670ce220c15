-- DuckDB's: e360812473fe
SELECT
    experiment, fragment, session, step, thread, actor, outcome, start_ns, end_ns,
    '' AS item, 0L AS owner, CAST(NULL AS BIGINT) AS element, 0L AS value
FROM sealed_operations
WHERE false
