-- A delete writes each field that the fragment uses: no later read may see what was there before. A write of a
-- transaction counts as its try ended, and others see it at the latest when that try ended.
CREATE VIEW register_writes AS
WITH used AS (SELECT experiment, fragment, bit_or(fields) AS mask FROM sealed_operations GROUP BY ALL),
places AS (
    SELECT experiment, fragment, place FROM used, range(63) AS of_mask(place) WHERE (mask >> place) & 1 = 1
)
SELECT
    o.experiment, o.fragment, session, step, thread, actor, counts_as AS outcome, start_ns, visible_ns AS end_ns,
    'field' AS item, key AS owner, place AS element, ((o.fragment << 48) | (session << 12) | step::BIGINT) + 1 AS value
FROM sealed_operations AS o
JOIN places AS p ON o.experiment = p.experiment AND o.fragment = p.fragment
WHERE operation IN ('insert', 'update', 'delete') AND has_happened(counts_as, try_end)
    AND (operation = 'delete' OR (fields >> place) & 1 = 1);

-- A record that is not found has its initial values if it was inserted in the experiment, and no delete of it had
-- started. Otherwise it is not known which delete was seen. A scan is left out: which records it observed depends
-- on its answer. So is a read of a transaction: it may see the state in which the transaction began, and
-- `isolation_anomalies` judges it.
CREATE VIEW register_reads AS
WITH used AS (SELECT bit_or(fields) AS mask FROM sealed_operations),
places AS (SELECT place FROM used, range(63) AS of_mask(place) WHERE (mask >> place) & 1 = 1),
born AS (
    SELECT
        experiment, fragment, key,
        bool_or(operation = 'insert') AS is_inserted,
        min(start_ns) FILTER (operation = 'delete') AS deleted_ns
    FROM sealed_operations
    WHERE operation IN ('insert', 'delete') AND has_happened(counts_as, try_end)
    GROUP BY ALL
),
reads AS (
    SELECT r.*, coalesce(b.is_inserted AND (b.deleted_ns IS NULL OR b.deleted_ns > r.end_ns), false) AS is_unborn
    FROM sealed_operations AS r
    LEFT JOIN born AS b ON r.experiment = b.experiment AND r.fragment = b.fragment AND r.key = b.key
    WHERE r.operation = 'read' AND r.outcome = 'ok' AND (r.try_end IS NULL OR r.try_end = 'best effort')
)
SELECT
    experiment, fragment, session, step, thread, actor, start_ns, end_ns, warmup, drained,
    'field' AS item, key AS owner, place AS element,
    CASE
        WHEN len(observed) = 0 THEN CASE WHEN is_unborn THEN 0 END
        WHEN (observed[1] >> place) & 1 = 0 THEN 0
        WHEN observed[2 + bit_count(observed[1] & ((1::BIGINT << place) - 1))] > 0
            THEN observed[2 + bit_count(observed[1] & ((1::BIGINT << place) - 1))]
    END AS value,
    len(observed) = 0 AS absent
FROM reads, places
WHERE (fields >> place) & 1 = 1;
