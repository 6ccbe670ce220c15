-- DuckDB's: 9ecfd17ce090
WITH born AS (
    SELECT
        experiment, fragment, key,
        bool_or(operation = 'insert') AS is_inserted,
        min(start_ns) FILTER (WHERE operation = 'delete') AS deleted_ns
    FROM sealed_operations
    WHERE operation IN ('insert', 'delete') AND has_happened(counts_as, try_end)
    GROUP BY experiment, fragment, key
),
reads AS (
    SELECT
        r.*,
        coalesce(b.is_inserted AND (b.deleted_ns IS NULL OR b.deleted_ns > r.end_ns), false) AS is_unborn,
        explode(filter(sequence(0, 62), p -> shiftright(r.fields, p) & 1 = 1)) AS place
    FROM sealed_operations AS r
    LEFT JOIN born AS b ON r.experiment = b.experiment AND r.fragment = b.fragment AND r.key = b.key
    WHERE r.operation = 'read' AND r.outcome = 'ok' AND (r.try_end IS NULL OR r.try_end = 'best effort')
)
SELECT
    experiment, fragment, session, step, thread, actor, start_ns, end_ns, warmup, drained,
    'field' AS item, key AS owner, CAST(place AS BIGINT) AS element,
    -- The first value says which fields follow, a bit each.
    CASE
        WHEN size(observed) = 0 THEN CASE WHEN is_unborn THEN 0L END
        WHEN shiftright(get(observed, 0), place) & 1 = 0 THEN 0L
        WHEN get(observed, 1 + bit_count(get(observed, 0) & (shiftleft(1L, place) - 1))) > 0
            THEN get(observed, 1 + bit_count(get(observed, 0) & (shiftleft(1L, place) - 1)))
    END AS value,
    size(observed) = 0 AS absent
FROM reads
