-- The unpredictable reads of experiments whose SLA limits Γ that miss no limit: nothing is wrong with them but
-- values that had not been overwritten for longer than the limit.
CREATE VIEW excused_reads AS
WITH wrong AS (
    SELECT experiment, fragment, session, step, count(*) AS violations
    FROM unpredictable
    WHERE NOT closing
    GROUP BY ALL
),
stale AS (
    SELECT experiment, fragment, session, step, count(*) AS items, max(t_staleness_ns) AS t_ns
    FROM read_staleness
    WHERE k_staleness > 0
    GROUP BY ALL
)
SELECT w.experiment, w.fragment, w.session, w.step, true AS excused
FROM wrong AS w
JOIN stale AS s USING (experiment, fragment, session, step)
JOIN experiments AS e ON w.experiment = e.experiment
WHERE w.violations = s.items AND s.t_ns <= e.gamma_limit_ns;
