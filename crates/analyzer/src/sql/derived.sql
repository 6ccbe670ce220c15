-- One row a session, from its operations.
CREATE VIEW sessions AS
SELECT
    experiment,
    fragment,
    session,
    min(socialite) AS socialite,
    min(thread) AS thread,
    count(*) AS operations,
    min(start_ns) AS start_ns,
    max(end_ns) AS end_ns,
    max(end_ns) - min(start_ns) AS duration_ns,
    bool_and(outcome = 'ok') AS all_ok,
    bool_or(outcome = 'failed') AS any_failed,
    bool_or(outcome = 'unknown') AS any_unknown,
    bool_or(outcome = 'skipped') AS any_skipped,
    bool_or(unpredictable) AS any_unpredictable
FROM operations
GROUP BY experiment, fragment, session;

-- One row an experiment, from its plan and its verdict.
CREATE TABLE experiments (
    experiment BIGINT, threads BIGINT, ruling VARCHAR, reasons VARCHAR[], elapsed_ns BIGINT, sessions BIGINT,
    ok BIGINT, failed BIGINT, unknown BIGINT, skipped BIGINT, throughput_per_s DOUBLE, sessions_per_s DOUBLE,
    mean_ns DOUBLE, p50_ns BIGINT, p95_ns BIGINT, p99_ns BIGINT, max_ns BIGINT, within_beta_percent DOUBLE,
    reads BIGINT, unpredictable_reads BIGINT, unpredictable_percent DOUBLE, sla VARCHAR, store VARCHAR, trace VARCHAR
);
