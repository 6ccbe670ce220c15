-- DuckDB's: a304bb451e94
WITH slices AS (
    SELECT
        t.experiment, t.slice, e.slice_ns / 1e9 AS slice_s,
        coalesce(
            last_value(CASE WHEN t.ok + t.errors > 0 THEN t.errors > t.ok END) IGNORE NULLS
                OVER (PARTITION BY t.experiment ORDER BY t.slice),
            false
        ) AS down
    FROM timeline AS t
    JOIN experiments AS e ON t.experiment = e.experiment
),
states AS (
    SELECT *, down AND NOT coalesce(lag(down) OVER (PARTITION BY experiment ORDER BY slice), false) AS goes_down
    FROM slices
)
SELECT
    experiment,
    count(*) FILTER (WHERE goes_down) AS outages,
    coalesce(sum(slice_s) FILTER (WHERE NOT down), 0) AS up_s,
    coalesce(sum(slice_s) FILTER (WHERE down), 0) AS down_s,
    sum(slice_s) FILTER (WHERE NOT down) / nullif(count(*) FILTER (WHERE goes_down), 0) AS between_failures_s,
    sum(slice_s) FILTER (WHERE down) / nullif(count(*) FILTER (WHERE goes_down), 0) AS to_repair_s
FROM states
GROUP BY experiment
