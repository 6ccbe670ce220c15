-- The place in the trace of the write whose id a read observed. 0 is no id: it is an initial value.
CREATE MACRO write_fragment(id) AS (id - 1) >> 48;
CREATE MACRO write_session(id) AS ((id - 1) >> 12) & 68719476735;
CREATE MACRO write_step(id) AS (id - 1) & 4095;

-- A read is checked unless its transaction was rolled back: then it may have seen what the transaction
-- itself wrote.
CREATE MACRO is_checked_read(operation, counts_as, try_end) AS
    operation = 'read' AND counts_as = 'ok' AND try_end IS DISTINCT FROM 'abort';
-- A write happened unless the transaction did not.
CREATE MACRO has_happened(counts_as, try_end) AS
    counts_as IN ('ok', 'unknown') AND try_end IS DISTINCT FROM 'abort';

CREATE VIEW item_updates AS
WITH used AS (SELECT bit_or(fields) AS mask FROM operations),
places AS (SELECT place FROM used, range(63) AS of_mask(place) WHERE (mask >> place) & 1 = 1)
SELECT
    experiment, fragment, session, step, operation, counts_as AS outcome, start_ns, visible_ns AS end_ns,
    'field' AS item, key AS owner, place AS element, 1 AS change
FROM operations, places
WHERE operation IN ('insert', 'update') AND has_happened(counts_as, try_end) AND (fields >> place) & 1 = 1
UNION ALL
SELECT
    experiment, fragment, session, step, operation, counts_as, start_ns, visible_ns,
    'existence', key, NULL, CASE operation WHEN 'insert' THEN 1 ELSE -1 END
FROM operations
WHERE operation IN ('insert', 'delete') AND has_happened(counts_as, try_end);

-- A scan is left out: which records it observed depends on its answer. A read of all fields that the run
-- uses has one row for them, as most reads do.
CREATE VIEW item_reads AS
WITH used AS (SELECT bit_or(fields) AS mask FROM operations),
places AS (SELECT place FROM used, range(63) AS of_mask(place) WHERE (mask >> place) & 1 = 1)
SELECT
    experiment, fragment, session, step, snapshot_ns AS start_ns, warmup, drained,
    'field' AS item, key AS owner, NULL AS element, 'record' AS unit
FROM operations, used
WHERE is_checked_read(operation, counts_as, try_end) AND fields = mask
UNION ALL
SELECT
    experiment, fragment, session, step, snapshot_ns AS start_ns, warmup, drained, 'field', key, place, 'record'
FROM operations, used, places
WHERE is_checked_read(operation, counts_as, try_end) AND fields <> mask AND (fields >> place) & 1 = 1
UNION ALL
SELECT
    experiment, fragment, session, step, snapshot_ns AS start_ns, warmup, drained, 'existence', key, NULL, 'record'
FROM operations
WHERE is_checked_read(operation, counts_as, try_end);
