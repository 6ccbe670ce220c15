-- In an open loop the first operation of a session has a due time. From then on the session first
-- waits for a thread, then for its replayer; waited_ns is what it waits for an actor or a write.
-- Every replayer counts its threads from 0. The other views do not need these columns, and read
-- sealed_operations: it takes a sort to find the operation that a thread ran before.
CREATE VIEW operations AS
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
    * EXCLUDE (freed_ns),
    end_ns - start_ns AS service_ns,
    CASE WHEN due_ns IS NOT NULL AND step = 0 THEN greatest(0, coalesce(freed_ns - due_ns, 0)) END AS queued_ns,
    CASE
        WHEN due_ns IS NOT NULL AND step = 0 THEN greatest(0, start_ns - waited_ns - greatest(due_ns, coalesce(freed_ns, due_ns)))
    END AS late_ns
FROM freed;
