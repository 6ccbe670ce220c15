-- A comparison's cells, in the order of its plan: one row per store and point of the
-- axis. Values that were not requested or do not exist are NULL.
CREATE TABLE cells (
    point VARCHAR, store VARCHAR, run VARCHAR, workload_id VARCHAR, outcome VARCHAR,
    soar DOUBLE, soar_low DOUBLE, soar_high DOUBLE, soar_threads UINTEGER,
    soar_at_least BOOLEAN, soar_confirmed_by UINTEGER, soar_void VARCHAR,
    socialites DOUBLE, socialites_low DOUBLE, socialites_high DOUBLE,
    socialites_at_least BOOLEAN, socialites_confirmed_by UINTEGER, socialites_void VARCHAR,
    rate DOUBLE, rate_low DOUBLE, rate_high DOUBLE, rate_threads UINTEGER,
    rate_at_least BOOLEAN, rate_confirmed_by UINTEGER, rate_void VARCHAR,
    threads UINTEGER, throughput_per_s DOUBLE, within_beta_percent DOUBLE, p95_ns UBIGINT, gamma_p95_ns UBIGINT,
    reads UBIGINT, unpredictable_reads UBIGINT, unpredictable_percent DOUBLE, anomaly_score DOUBLE,
    response_ns_p95 UBIGINT, service_ns_p95 UBIGINT, counted_name VARCHAR, counted_per_minute DOUBLE,
    conditions_broken VARCHAR, ruling VARCHAR,
    error VARCHAR
);
