-- DuckDB's: e0b4907f1352
SELECT
    experiment, fragment, item, owner, element,
    count(*) AS reads,
    count(*) FILTER (WHERE k_staleness > 0) AS stale_reads,
    max(k_staleness) AS k_staleness_max,
    max(t_staleness_ns) AS t_staleness_max_ns
FROM read_staleness
WHERE NOT warmup AND NOT drained
GROUP BY experiment, fragment, item, owner, element
