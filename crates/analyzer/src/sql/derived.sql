-- One row per session, from its operations.
CREATE VIEW sessions AS
SELECT
    experiment,
    fragment,
    session,
    min(kind) AS kind,
    min(actor) AS actor,
    min(thread) AS thread,
    count(*) FILTER (counts_as <> 'nothing' AND try = 0) AS operations,
    min(start_ns) AS start_ns,
    max(end_ns) AS end_ns,
    max(end_ns) - min(start_ns) AS duration_ns,
    -- What an earlier try of a transaction did was rolled back.
    bool_and(counts_as IN ('ok', 'aborted', 'nothing')) AND coalesce(max_by(try_end, try), 'committed') <> 'aborted' AS all_ok,
    bool_or(outcome = 'failed') AS any_failed,
    bool_or(outcome = 'unknown') AS any_unknown,
    bool_or(outcome = 'skipped') AS any_skipped,
    bool_or(counts_as = 'aborted') AS any_aborted,
    bool_or(unpredictable) AS any_unpredictable,
    bool_or(warmup) AS warmup,
    min(due_ns) AS due_ns,
    max(end_ns) - coalesce(min(due_ns), min(start_ns)) AS response_ns
FROM sealed_operations
GROUP BY experiment, fragment, session;

-- One row per try of a transaction. What a session does outside of transactions is in none of them.
CREATE VIEW transactions AS
SELECT
    experiment,
    fragment,
    session,
    txn,
    try,
    min(thread) AS thread,
    min(start_ns) AS start_ns,
    max(end_ns) AS end_ns,
    max(end_ns - start_ns) FILTER (operation = 'begin') AS begin_ns,
    max(end_ns - start_ns) FILTER (operation IN ('commit', 'abort')) AS commit_ns,
    count(*) FILTER (counts_as <> 'nothing') AS operations,
    min(try_end) AS outcome,
    bool_or(warmup) AS warmup,
    bool_or(drained) AS drained
FROM sealed_operations
WHERE txn IS NOT NULL
GROUP BY experiment, fragment, session, txn, try;

-- One row per experiment, from its plan and its verdict.
CREATE TABLE experiments (
    experiment BIGINT, threads BIGINT, rate_per_s DOUBLE, ruling VARCHAR, reasons VARCHAR[], measured_from_ns BIGINT, elapsed_ns BIGINT,
    counted_ns BIGINT, slice_ns BIGINT, warmup_operations BIGINT, drained_operations BIGINT, sessions BIGINT, noops BIGINT, ok BIGINT, failed BIGINT, unknown BIGINT,
    skipped BIGINT, aborted BIGINT, throughput_per_s DOUBLE, sessions_per_s DOUBLE, mean_ns DOUBLE, p50_ns BIGINT, p95_ns BIGINT,
    p99_ns BIGINT, max_ns BIGINT, service_mean_ns DOUBLE, service_p50_ns BIGINT, service_p95_ns BIGINT,
    service_p99_ns BIGINT, service_max_ns BIGINT, within_beta_percent DOUBLE, reads BIGINT, unpredictable_reads BIGINT,
    unpredictable_percent DOUBLE, met_percent DOUBLE, beta_ns BIGINT, gamma_limit_ns BIGINT, sla VARCHAR, store VARCHAR, trace VARCHAR
);

-- The distribution of response times, one row per value. Values are counted, not sorted:
-- this needs memory only for the distinct values, and DuckDB can move them to disk.
CREATE VIEW spectrum AS
WITH counted AS (
    SELECT experiment, operation, response_ns, count(*) AS operations
    FROM sealed_operations
    WHERE counts_as = 'ok' AND NOT warmup AND NOT drained
    GROUP BY ALL
)
SELECT
    *,
    100.0 * sum(operations) OVER (PARTITION BY experiment, operation ORDER BY response_ns)
        / sum(operations) OVER (PARTITION BY experiment, operation) AS percent
FROM counted;

-- The same for the service times of open loops.
CREATE VIEW service_spectrum AS
WITH counted AS (
    SELECT experiment, operation, end_ns - start_ns AS service_ns, count(*) AS operations
    FROM sealed_operations
    WHERE counts_as = 'ok' AND NOT warmup AND NOT drained AND experiment IN (SELECT experiment FROM due_rates)
    GROUP BY ALL
)
SELECT
    *,
    100.0 * sum(operations) OVER (PARTITION BY experiment, operation ORDER BY service_ns)
        / sum(operations) OVER (PARTITION BY experiment, operation) AS percent
FROM counted;
