-- The writes of an experiment's registers, and the reads of those that were written, register by register.
-- Reads of the warm-up and of the drained part are left out. So are reads that found nothing if rows of the log
-- are missing: a write that is not in the log may have removed it.
WITH writes AS (
    SELECT fragment, item, owner, element, value, start_ns, end_ns, outcome = 'ok' AS is_known, thread, actor
    FROM register_writes
    WHERE experiment = {experiment}
),
reads AS (
    SELECT fragment, item, owner, element, value, start_ns, end_ns, thread, actor
    FROM register_reads
    WHERE experiment = {experiment} AND NOT warmup AND NOT drained AND NOT (absent AND {is_torn})
),
written AS (SELECT DISTINCT fragment, item, owner, element FROM writes)
SELECT fragment, item, owner, element, value, start_ns, end_ns, true AS is_write, is_known, thread, actor
FROM writes
UNION ALL
SELECT r.fragment, r.item, r.owner, r.element, r.value, r.start_ns, r.end_ns, false, true, r.thread, r.actor
FROM reads AS r
SEMI JOIN written AS w
    ON r.fragment = w.fragment AND r.item = w.item AND r.owner = w.owner AND r.element IS NOT DISTINCT FROM w.element
ORDER BY fragment, item, owner, element
