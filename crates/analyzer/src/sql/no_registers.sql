-- The family has no registers.
CREATE VIEW register_writes AS
SELECT
    experiment, fragment, session, step, thread, actor, outcome, start_ns, end_ns,
    '' AS item, 0::BIGINT AS owner, NULL::BIGINT AS element, 0::BIGINT AS value
FROM sealed_operations
WHERE false;

CREATE VIEW register_reads AS
SELECT
    experiment, fragment, session, step, thread, actor, start_ns, end_ns, warmup, drained,
    '' AS item, 0::BIGINT AS owner, NULL::BIGINT AS element, 0::BIGINT AS value, false AS absent
FROM sealed_operations
WHERE false;
