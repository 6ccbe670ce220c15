-- DuckDB's: d2978482b56e
-- Percentiles come from counts of equal values, by ranks in whole numbers: as exact as DuckDB's quantile_disc, and
-- Spark can move them to disk.
WITH cut AS (
    SELECT
        e.experiment,
        e.measured_from_ns,
        e.slice_ns,
        e.beta_ns,
        d.experiment IS NOT NULL AS is_open,
        greatest(1, (greatest(e.elapsed_ns, e.counted_ns) + e.slice_ns - 1) div e.slice_ns) AS slices
    FROM experiments AS e
    LEFT JOIN (SELECT DISTINCT experiment FROM due_rates) AS d ON e.experiment = d.experiment
    WHERE e.slice_ns > 0
),
slice AS (
    SELECT experiment, slice_ns, is_open, explode(sequence(0L, slices - 1)) AS slice FROM cut
),
placed AS (
    SELECT
        o.experiment,
        greatest(0, least(c.slices - 1, (o.end_ns - c.measured_from_ns) div c.slice_ns)) AS slice,
        o.counts_as, o.unpredictable, o.response_ns, o.end_ns - o.start_ns AS service_ns, o.step, o.try, o.outcome,
        c.beta_ns, c.is_open, x.excused
    FROM sealed_operations AS o
    LEFT JOIN excused_reads AS x
        ON o.experiment = x.experiment AND o.fragment = x.fragment AND o.session = x.session AND o.step = x.step
    JOIN cut AS c ON o.experiment = c.experiment
    WHERE NOT o.warmup AND NOT o.drained
),
ended AS (
    SELECT
        experiment, slice,
        count(*) FILTER (WHERE counts_as = 'ok') AS ok,
        count(*) FILTER (WHERE counts_as NOT IN ('ok', 'aborted', 'nothing')) AS errors,
        count(*) FILTER (WHERE unpredictable) AS unpredictable,
        count(*) FILTER (WHERE counts_as = 'ok' AND response_ns <= beta_ns AND (NOT unpredictable OR excused)) AS met,
        count(*) FILTER (WHERE step = 0 AND try = 0 AND outcome <> 'skipped') AS sessions
    FROM placed
    GROUP BY experiment, slice
),
times AS (
    SELECT
        experiment, slice, is_service, ns, n,
        sum(n) OVER (PARTITION BY experiment, slice, is_service ORDER BY ns ROWS UNBOUNDED PRECEDING) AS so_far,
        sum(n) OVER (PARTITION BY experiment, slice, is_service) AS total
    FROM (
        SELECT experiment, slice, false AS is_service, response_ns AS ns, count(*) AS n
        FROM placed
        WHERE counts_as = 'ok'
        GROUP BY experiment, slice, response_ns
        UNION ALL
        SELECT experiment, slice, true AS is_service, service_ns AS ns, count(*) AS n
        FROM placed
        WHERE counts_as = 'ok' AND is_open
        GROUP BY experiment, slice, service_ns
    )
),
percentiles AS (
    SELECT
        experiment, slice, is_service,
        min(ns) FILTER (WHERE 100 * so_far >= 50 * total) AS p50_ns,
        min(ns) FILTER (WHERE 100 * so_far >= 95 * total) AS p95_ns,
        min(ns) FILTER (WHERE 100 * so_far >= 99 * total) AS p99_ns,
        max(ns) AS max_ns
    FROM times
    GROUP BY experiment, slice, is_service
)
SELECT
    s.experiment,
    s.slice,
    s.slice * s.slice_ns / 1e9 AS from_s,
    (s.slice + 1) * s.slice_ns / 1e9 AS to_s,
    coalesce(e.ok, 0) AS ok,
    coalesce(e.errors, 0) AS errors,
    coalesce(e.unpredictable, 0) AS unpredictable,
    coalesce(p.p50_ns, 0) AS p50_ns,
    coalesce(p.p95_ns, 0) AS p95_ns,
    coalesce(p.p99_ns, 0) AS p99_ns,
    coalesce(p.max_ns, 0) AS max_ns,
    coalesce(e.met, 0) AS met,
    100.0D * e.met / nullif(e.ok + e.errors, 0) AS met_percent,
    coalesce(e.sessions, 0) AS sessions,
    d.due_per_s,
    CASE WHEN s.is_open THEN coalesce(q.p50_ns, 0) END AS service_p50_ns,
    CASE WHEN s.is_open THEN coalesce(q.p95_ns, 0) END AS service_p95_ns,
    CASE WHEN s.is_open THEN coalesce(q.p99_ns, 0) END AS service_p99_ns,
    CASE WHEN s.is_open THEN coalesce(q.max_ns, 0) END AS service_max_ns
FROM slice AS s
LEFT JOIN ended AS e ON s.experiment = e.experiment AND s.slice = e.slice
LEFT JOIN percentiles AS p ON s.experiment = p.experiment AND s.slice = p.slice AND NOT p.is_service
LEFT JOIN percentiles AS q ON s.experiment = q.experiment AND s.slice = q.slice AND q.is_service
LEFT JOIN due_rates AS d ON s.experiment = d.experiment AND s.slice = d.slice
