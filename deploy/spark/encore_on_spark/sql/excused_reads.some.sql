-- DuckDB's: c0d3457c1a39
WITH wrong AS (
    SELECT experiment, fragment, session, step, count(*) AS violations
    FROM unpredictable
    WHERE NOT closing
    GROUP BY experiment, fragment, session, step
),
stale AS (
    SELECT experiment, fragment, session, step, count(*) AS items, max(t_staleness_ns) AS t_ns
    FROM read_staleness
    WHERE k_staleness > 0
    GROUP BY experiment, fragment, session, step
)
SELECT w.experiment, w.fragment, w.session, w.step, true AS excused
FROM wrong AS w
JOIN stale AS s
    ON w.experiment = s.experiment AND w.fragment = s.fragment AND w.session = s.session AND w.step = s.step
JOIN experiments AS e ON w.experiment = e.experiment
WHERE w.violations = s.items AND s.t_ns <= e.gamma_limit_ns
