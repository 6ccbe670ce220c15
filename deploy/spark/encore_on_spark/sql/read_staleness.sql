-- DuckDB's: 377e9c956002
-- Reads and completed writes of a register in one order of time, as in freshness.
WITH writes AS (
    SELECT experiment, fragment, item, owner, coalesce(element, -1) AS place, value, start_ns, end_ns, outcome
    FROM register_writes
),
known AS (
    SELECT experiment, fragment, item, owner, place, value, start_ns, end_ns FROM writes WHERE outcome = 'ok'
),
seen AS (
    SELECT
        r.experiment, r.fragment, r.session, r.step, r.thread, r.actor, r.start_ns, r.end_ns, r.warmup, r.drained,
        r.item, r.owner, r.element, r.value,
        coalesce(r.element, -1) AS place,
        -- Nothing is newer than a write of unknown fate.
        CASE WHEN r.value = 0 THEN -1L WHEN w.outcome = 'ok' THEN w.end_ns ELSE 9223372036854775807L END AS seen_end_ns
    FROM register_reads AS r
    LEFT JOIN writes AS w
        ON r.experiment = w.experiment AND r.fragment = w.fragment AND r.item = w.item AND r.owner = w.owner
        AND coalesce(r.element, -1) = w.place AND r.value = w.value
    WHERE r.value = 0 OR w.value IS NOT NULL
),
in_order AS (
    SELECT
        *,
        max(write_end_ns) OVER (
            PARTITION BY experiment, fragment, item, owner, place ORDER BY at_ns, is_write ROWS UNBOUNDED PRECEDING
        ) AS last_end_ns,
        max(write_start_ns) OVER (
            PARTITION BY experiment, fragment, item, owner, place ORDER BY at_ns, is_write ROWS UNBOUNDED PRECEDING
        ) AS newest_start_ns
    FROM (
        SELECT
            *, 0 AS is_write, start_ns AS at_ns, CAST(NULL AS BIGINT) AS write_start_ns, CAST(NULL AS BIGINT) AS write_end_ns
        FROM seen
        UNION ALL
        SELECT
            experiment, fragment, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
            item, owner, NULL, NULL, place, NULL, 1, end_ns, start_ns, end_ns
        FROM known
    )
),
aged AS (
    SELECT *, coalesce(newest_start_ns > seen_end_ns, false) AS is_stale FROM in_order WHERE is_write = 0
),
newer AS (
    SELECT
        a.experiment, a.fragment, a.session, a.step, a.item, a.owner, a.place,
        count(*) AS k,
        a.start_ns - min(k.end_ns) AS t_ns
    FROM aged AS a
    JOIN known AS k
        ON a.experiment = k.experiment AND a.fragment = k.fragment AND a.item = k.item AND a.owner = k.owner
        AND a.place = k.place AND k.start_ns > a.seen_end_ns AND k.end_ns < a.start_ns
    WHERE a.is_stale
    GROUP BY a.experiment, a.fragment, a.session, a.step, a.item, a.owner, a.place, a.start_ns
)
SELECT
    a.experiment, a.fragment, a.session, a.step, a.thread, a.actor, a.start_ns, a.end_ns, a.warmup, a.drained,
    a.item, a.owner, a.element, a.value,
    a.start_ns - a.last_end_ns AS age_ns,
    coalesce(n.k, 0) AS k_staleness,
    coalesce(n.t_ns, 0) AS t_staleness_ns
FROM aged AS a
LEFT JOIN newer AS n
    ON a.experiment = n.experiment AND a.fragment = n.fragment AND a.session = n.session AND a.step = n.step
    AND a.item = n.item AND a.owner = n.owner AND a.place = n.place
