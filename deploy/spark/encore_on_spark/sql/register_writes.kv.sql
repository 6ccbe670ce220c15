-- DuckDB's: 195a0c6e0e5d
-- A delete writes each field that the fragment uses.
WITH used AS (SELECT experiment, fragment, bit_or(fields) AS mask FROM sealed_operations GROUP BY experiment, fragment)
SELECT
    o.experiment, o.fragment, session, step, thread, actor, counts_as AS outcome, start_ns, visible_ns AS end_ns,
    'field' AS item, key AS owner, place AS element,
    (shiftleft(o.fragment, 48) | shiftleft(session, 12) | CAST(step AS BIGINT)) + 1 AS value
FROM sealed_operations AS o
JOIN used AS u ON o.experiment = u.experiment AND o.fragment = u.fragment
LATERAL VIEW explode(
    filter(
        sequence(0L, 62L),
        p -> shiftright(CASE WHEN operation = 'delete' THEN mask ELSE fields END, CAST(p AS INT)) & 1 = 1
    )
) AS place
WHERE operation IN ('insert', 'update', 'delete') AND has_happened(counts_as, try_end)
