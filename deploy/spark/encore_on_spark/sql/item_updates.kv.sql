-- DuckDB's: 9a7fad7a0f71
SELECT
    experiment, fragment, session, step, operation, counts_as AS outcome, start_ns, visible_ns AS end_ns,
    'field' AS item, key AS owner, explode(filter(sequence(0L, 62L), place -> shiftright(fields, CAST(place AS INT)) & 1 = 1)) AS element,
    1 AS change
FROM sealed_operations
WHERE operation IN ('insert', 'update') AND has_happened(counts_as, try_end)
UNION ALL
SELECT
    experiment, fragment, session, step, operation, counts_as, start_ns, visible_ns,
    'existence', key, CAST(NULL AS BIGINT), CASE operation WHEN 'insert' THEN 1 ELSE -1 END
FROM sealed_operations
WHERE operation IN ('insert', 'delete') AND has_happened(counts_as, try_end)
