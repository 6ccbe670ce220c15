-- One row per slice of an experiment's measured part, from the operations that ended in it. In a
-- closed loop no session is due, and service times are the response times.
CREATE VIEW timeline AS
WITH cut AS (
    SELECT
        experiment,
        measured_from_ns,
        slice_ns,
        beta_ns,
        experiment IN (SELECT experiment FROM due_rates) AS is_open,
        greatest(1, (greatest(elapsed_ns, counted_ns) + slice_ns - 1) // slice_ns) AS slices
    FROM experiments
    WHERE slice_ns > 0
),
slice AS (
    SELECT experiment, slice_ns, is_open, unnest(range(slices)) AS slice FROM cut
),
ended AS (
    SELECT
        o.experiment,
        greatest(0, least(c.slices - 1, (o.end_ns - c.measured_from_ns) // c.slice_ns)) AS slice,
        count(*) FILTER (counts_as = 'ok') AS ok,
        count(*) FILTER (counts_as NOT IN ('ok', 'aborted', 'nothing')) AS errors,
        count(*) FILTER (unpredictable) AS unpredictable,
        count(*) FILTER (counts_as = 'ok' AND response_ns <= c.beta_ns AND (NOT unpredictable OR x.excused)) AS met,
        count(*) FILTER (step = 0 AND try = 0 AND outcome <> 'skipped') AS sessions,
        quantile_disc(response_ns, [0.5, 0.95, 0.99]) FILTER (counts_as = 'ok') AS percentiles_ns,
        max(response_ns) FILTER (counts_as = 'ok') AS max_ns,
        quantile_disc(end_ns - start_ns, [0.5, 0.95, 0.99]) FILTER (counts_as = 'ok' AND c.is_open) AS service_percentiles_ns,
        max(end_ns - start_ns) FILTER (counts_as = 'ok' AND c.is_open) AS service_max_ns
    FROM sealed_operations AS o
    LEFT JOIN excused_reads AS x USING (experiment, fragment, session, step)
    JOIN cut AS c ON o.experiment = c.experiment
    WHERE NOT o.warmup AND NOT o.drained
    GROUP BY ALL
)
SELECT
    s.experiment,
    s.slice,
    s.slice * s.slice_ns / 1e9 AS from_s,
    (s.slice + 1) * s.slice_ns / 1e9 AS to_s,
    coalesce(e.ok, 0) AS ok,
    coalesce(e.errors, 0) AS errors,
    coalesce(e.unpredictable, 0) AS unpredictable,
    coalesce(e.percentiles_ns[1], 0) AS p50_ns,
    coalesce(e.percentiles_ns[2], 0) AS p95_ns,
    coalesce(e.percentiles_ns[3], 0) AS p99_ns,
    coalesce(e.max_ns, 0) AS max_ns,
    coalesce(e.met, 0) AS met,
    100.0 * e.met / (e.ok + e.errors) AS met_percent,
    coalesce(e.sessions, 0) AS sessions,
    d.due_per_s,
    CASE WHEN s.is_open THEN coalesce(e.service_percentiles_ns[1], 0) END AS service_p50_ns,
    CASE WHEN s.is_open THEN coalesce(e.service_percentiles_ns[2], 0) END AS service_p95_ns,
    CASE WHEN s.is_open THEN coalesce(e.service_percentiles_ns[3], 0) END AS service_p99_ns,
    CASE WHEN s.is_open THEN coalesce(e.service_max_ns, 0) END AS service_max_ns
FROM slice AS s
LEFT JOIN ended AS e ON s.experiment = e.experiment AND s.slice = e.slice
LEFT JOIN due_rates AS d ON s.experiment = d.experiment AND s.slice = d.slice;
