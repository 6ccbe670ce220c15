-- How often and how long a store was down, one row per experiment, by the slices of its timeline. A slice is down if
-- more operations failed in it than succeeded; a slice in which none ended is like the one before.
CREATE VIEW availability AS
WITH slices AS (
    SELECT
        t.experiment, t.slice, e.slice_ns / 1e9 AS slice_s,
        coalesce(last_value(CASE WHEN t.ok + t.errors > 0 THEN t.errors > t.ok END IGNORE NULLS) OVER so_far, false) AS down
    FROM timeline AS t
    JOIN experiments AS e ON t.experiment = e.experiment
    WINDOW so_far AS (PARTITION BY t.experiment ORDER BY t.slice)
),
states AS (
    SELECT *, down AND NOT coalesce(lag(down) OVER (PARTITION BY experiment ORDER BY slice), false) AS goes_down FROM slices
)
SELECT
    experiment,
    count(*) FILTER (goes_down) AS outages,
    coalesce(sum(slice_s) FILTER (NOT down), 0) AS up_s,
    coalesce(sum(slice_s) FILTER (down), 0) AS down_s,
    sum(slice_s) FILTER (NOT down) / nullif(count(*) FILTER (goes_down), 0) AS between_failures_s,
    sum(slice_s) FILTER (down) / nullif(count(*) FILTER (goes_down), 0) AS to_repair_s
FROM states
GROUP BY experiment;
