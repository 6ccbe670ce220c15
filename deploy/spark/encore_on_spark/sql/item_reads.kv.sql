-- DuckDB's: 53e026db3c58
WITH reads AS (
    SELECT *, fields = (SELECT bit_or(fields) FROM sealed_operations) AS is_whole
    FROM sealed_operations
    WHERE is_checked_read(operation, counts_as, try_end)
)
SELECT
    experiment, fragment, session, step, snapshot_ns AS start_ns, warmup, drained,
    'field' AS item, key AS owner, CAST(NULL AS BIGINT) AS element, 'record' AS unit
FROM reads
WHERE is_whole
UNION ALL
SELECT
    experiment, fragment, session, step, snapshot_ns, warmup, drained,
    'field', key, explode(filter(sequence(0L, 62L), place -> shiftright(fields, CAST(place AS INT)) & 1 = 1)), 'record'
FROM reads
WHERE NOT is_whole
UNION ALL
SELECT
    experiment, fragment, session, step, snapshot_ns, warmup, drained, 'existence', key, CAST(NULL AS BIGINT), 'record'
FROM reads
