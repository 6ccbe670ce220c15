-- The sealed tables of a run. Text in braces is replaced by a quoted pattern of Parquet
-- files. The pattern may contain a line break, so it must not be used in a comment.
CREATE VIEW sealed_operations AS
SELECT
    experiment,
    fragment,
    * EXCLUDE (experiment, fragment) REPLACE (
        coalesce(counts_as, outcome) AS counts_as,
        coalesce(snapshot_ns, start_ns) AS snapshot_ns,
        coalesce(visible_ns, end_ns) AS visible_ns
    )
FROM read_parquet({operations}, hive_partitioning = true, hive_types = {'experiment': BIGINT, 'fragment': BIGINT});

-- A closing read belongs to no session.
CREATE VIEW unpredictable AS
SELECT experiment, fragment, * EXCLUDE (experiment, fragment), false AS closing
FROM read_parquet({unpredictable}, hive_partitioning = true, hive_types = {'experiment': BIGINT, 'fragment': BIGINT})
UNION ALL
SELECT
    experiment, fragment, NULL, NULL, operation, start_ns, end_ns,
    violation.item, violation.owner, violation.element, violation.observed, violation.low, violation.high,
    false, false, true
FROM (SELECT *, unnest(violations) AS violation FROM closing_reads);
