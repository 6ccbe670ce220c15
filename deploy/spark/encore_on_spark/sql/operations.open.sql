-- DuckDB's: 7f19fe404b22
WITH freed AS (
    SELECT
        o.*,
        lag(o.end_ns) OVER (
            PARTITION BY o.experiment, r.replayer, o.thread ORDER BY o.start_ns, o.end_ns, o.fragment, o.session, o.step
        ) AS freed_ns
    FROM sealed_operations AS o
    LEFT JOIN replayers AS r ON o.experiment = r.experiment AND o.fragment = r.fragment
)
SELECT
    * EXCEPT (freed_ns),
    end_ns - start_ns AS service_ns,
    CASE WHEN due_ns IS NOT NULL AND step = 0 THEN greatest(0, coalesce(freed_ns - due_ns, 0)) END AS queued_ns,
    CASE
        WHEN due_ns IS NOT NULL AND step = 0 THEN greatest(0, start_ns - waited_ns - greatest(due_ns, coalesce(freed_ns, due_ns)))
    END AS late_ns
FROM freed
