-- DuckDB's: ec1b3795b9b6
WITH counted AS (
    SELECT experiment, operation, end_ns - start_ns AS service_ns, count(*) AS operations
    FROM sealed_operations
    WHERE counts_as = 'ok' AND NOT warmup AND NOT drained AND experiment IN (SELECT experiment FROM due_rates)
    GROUP BY experiment, operation, end_ns - start_ns
)
SELECT
    experiment, operation, service_ns, operations,
    100.0D * sum(operations) OVER (PARTITION BY experiment, operation ORDER BY service_ns ROWS UNBOUNDED PRECEDING)
        / sum(operations) OVER (PARTITION BY experiment, operation) AS percent
FROM counted
