-- A comparison's cells, in the order of its plan: a store at a point of the axis. What
-- was not asked for, or is not there, is NULL.
CREATE TABLE cells AS
SELECT
    point, store, run, workload_id, outcome,
    (cell->>'$.outcome.rated.soar.value')::DOUBLE AS soar,
    (cell->>'$.outcome.rated.soar.interval.low')::DOUBLE AS soar_low,
    (cell->>'$.outcome.rated.soar.interval.high')::DOUBLE AS soar_high,
    (cell->>'$.outcome.rated.soar.threads')::UINTEGER AS soar_threads,
    (cell->>'$.outcome.rated.socialites.value')::DOUBLE AS socialites,
    (cell->>'$.outcome.measured.threads')::UINTEGER AS threads,
    (cell->>'$.outcome.measured.throughput_per_s')::DOUBLE AS throughput_per_s,
    (cell->>'$.outcome.measured.within_beta_percent')::DOUBLE AS within_beta_percent,
    (cell->>'$.outcome.measured.reads')::UBIGINT AS reads,
    (cell->>'$.outcome.measured.unpredictable_reads')::UBIGINT AS unpredictable_reads,
    cell->>'$.outcome.measured.ruling' AS ruling,
    cell->>'$.outcome.failed' AS error
FROM (
    SELECT
        cell,
        cell->>'$.point' AS point,
        cell->>'$.store' AS store,
        cell->>'$.run' AS run,
        cell->>'$.workload_id' AS workload_id,
        -- `"missing"`, or an object with what came out as its one key.
        coalesce(json_keys(cell->'$.outcome')[1], cell->>'$.outcome') AS outcome
    FROM (SELECT unnest(cells) AS cell FROM read_json({document}, columns = {cells: 'JSON[]'}))
);
