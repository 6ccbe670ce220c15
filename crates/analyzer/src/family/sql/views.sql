-- No operation has items that are known.
CREATE VIEW item_updates AS
SELECT
    experiment, fragment, session, step, operation, outcome, start_ns, end_ns,
    NULL::VARCHAR AS item, NULL::BIGINT AS owner, NULL::BIGINT AS element, NULL::BIGINT AS change
FROM operations WHERE false;

CREATE VIEW item_reads AS
SELECT
    experiment, fragment, session, step, start_ns, warmup, drained,
    NULL::VARCHAR AS item, NULL::BIGINT AS owner, NULL::BIGINT AS element, NULL::VARCHAR AS unit
FROM operations WHERE false;

-- What statements returned or changed. `hash` is NULL for statements that return no rows.
CREATE VIEW results AS
SELECT
    experiment, fragment, session, step, "try", statement, operation, outcome, observed[1] AS row_count,
    CASE WHEN operation <> 'update' THEN observed[2] END AS hash
FROM operations WHERE statement IS NOT NULL AND outcome = 'ok';
