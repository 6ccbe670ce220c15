-- The figures of the registers, one row per experiment, from its verdict. Times are in nanoseconds.
CREATE TABLE consistency (
    experiment BIGINT, registers BIGINT, linearizable BIGINT, k_2 BIGINT, k_more BIGINT, from_the_future BIGINT,
    writes BIGINT, unknown_writes BIGINT, reads BIGINT, stale_reads BIGINT, unattributed_reads BIGINT,
    forgotten_reads BIGINT, gamma_p50_ns BIGINT, gamma_p95_ns BIGINT, gamma_max_ns BIGINT, written_values BIGINT,
    value_gamma_p50_ns BIGINT, value_gamma_p95_ns BIGINT, value_gamma_max_ns BIGINT, within_gamma_percent DOUBLE,
    delta_p95_ns BIGINT, delta_max_ns BIGINT, k_staleness_p95 BIGINT, k_staleness_max BIGINT,
    t_staleness_p95_ns BIGINT, t_staleness_max_ns BIGINT, t_visibility_p95_ns BIGINT, t_visibility_max_ns BIGINT
);

-- Γ of the values by the slice of the timeline in which they were written or read last, from the verdict.
CREATE TABLE gamma_over_time (
    experiment BIGINT, slice BIGINT, from_s DOUBLE, written_values BIGINT, p50_ns BIGINT, p95_ns BIGINT, max_ns BIGINT
);

-- Percentiles of Γ, from the verdict: that of the registers and that of the values.
CREATE TABLE gamma_spectrum (experiment BIGINT, percent DOUBLE, registers_ns BIGINT, values_ns BIGINT);

-- Session guarantees, from the verdict: by `thread` and by `actor`.
CREATE TABLE session_guarantees (
    experiment BIGINT, client VARCHAR, guarantee VARCHAR, reads BIGINT, violations BIGINT
);
