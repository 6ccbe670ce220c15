-- What the log says of each statement of the trace set.
CREATE VIEW recorded AS
SELECT regexp_extract(filename, 'fragment=([0-9]+)', 1)::BIGINT AS fragment, session, step, took_us, failed
FROM read_parquet({files}, filename = true);

-- The last try of each statement of an experiment, beside what the log recorded that its trace set was imported from.
CREATE TABLE beside_log AS
WITH replayed AS (
    SELECT fragment, session, step, statement, outcome::VARCHAR AS outcome, (end_ns - start_ns) // 1000 AS replayed_us
    FROM operations WHERE experiment = {experiment} AND statement IS NOT NULL AND outcome <> 'skipped'
    QUALIFY row_number() OVER (PARTITION BY fragment, session, step ORDER BY "try" DESC) = 1
)
SELECT statement, outcome, replayed_us, took_us AS recorded_us, failed, (outcome <> 'ok') <> failed AS differs
FROM replayed JOIN recorded USING (fragment, session, step);

CREATE VIEW beside_log_by_statement AS
SELECT
    statement::BIGINT AS statement, count(*)::BIGINT AS executed,
    count(*) FILTER (failed)::BIGINT AS recorded_failed,
    count(*) FILTER (outcome <> 'ok')::BIGINT AS replayed_failed,
    count(*) FILTER (differs)::BIGINT AS other_outcome,
    quantile_disc(recorded_us, 0.5)::BIGINT AS recorded_p50_us,
    quantile_disc(replayed_us, 0.5)::BIGINT AS replayed_p50_us,
    quantile_disc(recorded_us, 0.99)::BIGINT AS recorded_p99_us,
    quantile_disc(replayed_us, 0.99)::BIGINT AS replayed_p99_us
FROM beside_log GROUP BY statement ORDER BY other_outcome DESC, executed DESC, statement;
