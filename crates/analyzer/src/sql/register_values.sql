-- One row for each value of a register that was written: the write and the reads of the measured part that saw it.
-- Γ takes time in the square of the values of a register that overlap. A write of unknown fate that no read saw is
-- left out. The initial value has value 0; its row is there if a read saw it.
CREATE VIEW register_values AS
WITH seen AS (
    SELECT
        experiment, fragment, item, owner, coalesce(element, -1) AS place, value,
        count(*) AS reads, min(end_ns) AS first_read_end_ns, max(start_ns) AS last_read_ns
    FROM register_reads
    WHERE NOT warmup AND NOT drained AND value IS NOT NULL
    GROUP BY ALL
),
written AS (
    SELECT *, coalesce(element, -1) AS place FROM register_writes
),
registers AS (SELECT DISTINCT experiment, fragment, item, owner, place FROM written),
clusters AS (
    SELECT
        w.experiment, w.fragment, w.item, w.owner, w.place, w.value, w.session, w.step, w.start_ns,
        CASE w.outcome WHEN 'ok' THEN w.end_ns END AS end_ns,
        coalesce(s.reads, 0) AS reads,
        s.last_read_ns,
        least(CASE w.outcome WHEN 'ok' THEN w.end_ns END, s.first_read_end_ns) AS first_end_ns,
        greatest(w.start_ns, s.last_read_ns) AS last_start_ns,
        greatest(0, w.start_ns - coalesce(s.first_read_end_ns, w.start_ns)) AS future_ns
    FROM written AS w
    LEFT JOIN seen AS s
        ON w.experiment = s.experiment AND w.fragment = s.fragment AND w.item = s.item AND w.owner = s.owner
        AND w.place = s.place AND w.value = s.value
    WHERE w.outcome = 'ok' OR s.value IS NOT NULL
    UNION ALL
    SELECT
        experiment, fragment, item, owner, place, 0, NULL, NULL, NULL, NULL, reads, last_read_ns,
        -- Long before everything.
        -4611686018427387904, last_read_ns, 0
    FROM seen
    SEMI JOIN registers USING (experiment, fragment, item, owner, place)
    WHERE value = 0
),
ordered AS (
    SELECT
        *,
        max(last_start_ns) OVER (in_order ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) > first_end_ns
            OR last_start_ns > lead(first_end_ns) OVER in_order AS may_conflict
    FROM clusters
    WINDOW in_order AS (PARTITION BY experiment, fragment, item, owner, place ORDER BY first_end_ns)
),
pairs AS (
    SELECT
        v.experiment, v.fragment, v.item, v.owner, v.place, v.value,
        max(least(v.last_start_ns - w.first_end_ns, w.last_start_ns - v.first_end_ns)) AS chi_ns
    FROM (FROM ordered WHERE may_conflict) AS v
    JOIN (FROM ordered WHERE may_conflict) AS w
        ON v.experiment = w.experiment AND v.fragment = w.fragment AND v.item = w.item AND v.owner = w.owner
        AND v.place = w.place AND v.value <> w.value AND v.last_start_ns > w.first_end_ns
        AND w.last_start_ns > v.first_end_ns
    GROUP BY ALL
),
-- The last read of each known value and of all whose writes had ended before.
older AS (
    SELECT
        experiment, fragment, item, owner, place,
        coalesce(end_ns, first_end_ns) AS until_ns,
        max(last_read_ns) OVER (
            PARTITION BY experiment, fragment, item, owner, place ORDER BY coalesce(end_ns, first_end_ns)
        ) AS last_read_ns
    FROM clusters
    WHERE end_ns IS NOT NULL OR value = 0
),
followed AS (
    SELECT experiment, fragment, item, owner, place, max(last_read_ns) AS last_read_ns FROM clusters GROUP BY ALL
)
SELECT
    c.experiment, c.fragment, c.item, c.owner, nullif(c.place, -1) AS element, c.value, c.session, c.step,
    c.start_ns, c.end_ns, c.reads, nullif(c.first_end_ns, -4611686018427387904) AS first_end_ns, c.last_start_ns,
    c.future_ns,
    greatest(c.future_ns, coalesce(p.chi_ns, 0)) AS gamma_ns,
    CASE WHEN c.end_ns < f.last_read_ns THEN greatest(0, coalesce(o.last_read_ns - c.end_ns, 0)) END AS t_visibility_ns
FROM clusters AS c
JOIN followed AS f USING (experiment, fragment, item, owner, place)
LEFT JOIN pairs AS p USING (experiment, fragment, item, owner, place, value)
ASOF LEFT JOIN older AS o
    ON c.experiment = o.experiment AND c.fragment = o.fragment AND c.item = o.item AND c.owner = o.owner
    AND c.place = o.place AND c.start_ns > o.until_ns;

-- One row for each register that was written.
CREATE VIEW registers AS
SELECT
    experiment, fragment, item, owner, element,
    count(*) AS written_values,
    sum(reads)::BIGINT AS reads,
    max(gamma_ns) AS gamma_ns,
    max(gamma_ns) = 0 AS linearizable
FROM register_values
GROUP BY ALL;
