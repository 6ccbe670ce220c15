-- DuckDB's: 598dbeddc7f6
WITH counted AS (
    SELECT experiment, operation, response_ns, count(*) AS operations
    FROM sealed_operations
    WHERE counts_as = 'ok' AND NOT warmup AND NOT drained
    GROUP BY experiment, operation, response_ns
)
SELECT
    experiment, operation, response_ns, operations,
    100.0D * sum(operations) OVER (PARTITION BY experiment, operation ORDER BY response_ns ROWS UNBOUNDED PRECEDING)
        / sum(operations) OVER (PARTITION BY experiment, operation) AS percent
FROM counted
