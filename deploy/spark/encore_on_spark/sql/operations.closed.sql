-- DuckDB's: 29eb711877c2
-- In a closed loop no session has a due time, so none is late.
SELECT *, end_ns - start_ns AS service_ns, CAST(NULL AS BIGINT) AS queued_ns, CAST(NULL AS BIGINT) AS late_ns
FROM sealed_operations
