-- DuckDB's: 1b11e50ac30d
-- A closing read belongs to no session.
SELECT *, false AS closing FROM files_of_unpredictable
UNION ALL
SELECT
    experiment, fragment, CAST(NULL AS BIGINT), CAST(NULL AS SMALLINT), operation, start_ns, end_ns,
    violation.item, violation.owner, violation.element, violation.observed, violation.low, violation.high,
    false, false, true
FROM (SELECT *, explode(violations) AS violation FROM closing_reads)
