-- DuckDB's: 5d5ba014948f
WITH seen AS (
    SELECT
        experiment, fragment, item, owner, coalesce(element, -1) AS place, value,
        count(*) AS reads, min(end_ns) AS first_read_end_ns, max(start_ns) AS last_read_ns
    FROM register_reads
    WHERE NOT warmup AND NOT drained AND value IS NOT NULL
    GROUP BY experiment, fragment, item, owner, coalesce(element, -1), value
),
written AS (
    SELECT *, coalesce(element, -1) AS place FROM register_writes
),
written_registers AS (SELECT DISTINCT experiment, fragment, item, owner, place FROM written),
clusters AS (
    SELECT
        w.experiment, w.fragment, w.item, w.owner, w.place, w.value, w.session, w.step, w.start_ns,
        CASE w.outcome WHEN 'ok' THEN w.end_ns END AS end_ns,
        coalesce(s.reads, 0) AS reads,
        s.last_read_ns,
        least(CASE w.outcome WHEN 'ok' THEN w.end_ns END, s.first_read_end_ns) AS first_end_ns,
        greatest(w.start_ns, s.last_read_ns) AS last_start_ns,
        greatest(0L, w.start_ns - coalesce(s.first_read_end_ns, w.start_ns)) AS future_ns
    FROM written AS w
    LEFT JOIN seen AS s
        ON w.experiment = s.experiment AND w.fragment = s.fragment AND w.item = s.item AND w.owner = s.owner
        AND w.place = s.place AND w.value = s.value
    WHERE w.outcome = 'ok' OR s.value IS NOT NULL
    UNION ALL
    SELECT
        s.experiment, s.fragment, s.item, s.owner, s.place, 0L, NULL, NULL, NULL, NULL, s.reads, s.last_read_ns,
        -- Long before everything.
        -4611686018427387904L, s.last_read_ns, 0L
    FROM seen AS s
    LEFT SEMI JOIN written_registers AS w
        ON s.experiment = w.experiment AND s.fragment = w.fragment AND s.item = w.item AND s.owner = w.owner
        AND s.place = w.place
    WHERE s.value = 0
),
marked AS (
    SELECT
        *,
        max(last_start_ns) OVER (
            PARTITION BY experiment, fragment, item, owner, place ORDER BY first_end_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) > first_end_ns
            OR last_start_ns > lead(first_end_ns) OVER (
                PARTITION BY experiment, fragment, item, owner, place ORDER BY first_end_ns
            ) AS may_conflict
    FROM clusters
),
suspects AS (SELECT * FROM marked WHERE may_conflict),
pairs AS (
    SELECT
        v.experiment, v.fragment, v.item, v.owner, v.place, v.value,
        max(least(v.last_start_ns - w.first_end_ns, w.last_start_ns - v.first_end_ns)) AS chi_ns
    FROM suspects AS v
    JOIN suspects AS w
        ON v.experiment = w.experiment AND v.fragment = w.fragment AND v.item = w.item AND v.owner = w.owner
        AND v.place = w.place AND v.value <> w.value AND v.last_start_ns > w.first_end_ns
        AND w.last_start_ns > v.first_end_ns
    GROUP BY v.experiment, v.fragment, v.item, v.owner, v.place, v.value
),
-- The last read of each known value and of all whose writes had ended before the start of a write.
in_order AS (
    SELECT
        *,
        max(CASE WHEN is_older = 1 THEN last_read_ns END) OVER (
            PARTITION BY experiment, fragment, item, owner, place ORDER BY at_ns, is_older ROWS UNBOUNDED PRECEDING
        ) AS older_read_ns
    FROM (
        SELECT *, 0 AS is_older, start_ns AS at_ns FROM clusters
        UNION ALL
        SELECT *, 1, coalesce(end_ns, first_end_ns) FROM clusters WHERE end_ns IS NOT NULL OR value = 0
    )
),
followed AS (
    SELECT experiment, fragment, item, owner, place, max(last_read_ns) AS last_read_ns
    FROM clusters
    GROUP BY experiment, fragment, item, owner, place
)
SELECT
    c.experiment, c.fragment, c.item, c.owner, nullif(c.place, -1) AS element, c.value, c.session, c.step,
    c.start_ns, c.end_ns, c.reads, nullif(c.first_end_ns, -4611686018427387904L) AS first_end_ns, c.last_start_ns,
    c.future_ns,
    greatest(c.future_ns, coalesce(p.chi_ns, 0)) AS gamma_ns,
    CASE WHEN c.end_ns < f.last_read_ns THEN greatest(0L, coalesce(c.older_read_ns - c.end_ns, 0)) END AS t_visibility_ns
FROM (SELECT * FROM in_order WHERE is_older = 0) AS c
JOIN followed AS f
    ON c.experiment = f.experiment AND c.fragment = f.fragment AND c.item = f.item AND c.owner = f.owner
    AND c.place = f.place
LEFT JOIN pairs AS p
    ON c.experiment = p.experiment AND c.fragment = p.fragment AND c.item = p.item AND c.owner = p.owner
    AND c.place = p.place AND c.value = p.value
