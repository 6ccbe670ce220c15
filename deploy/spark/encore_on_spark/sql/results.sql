-- DuckDB's: 80bab0f8eb6c
SELECT
    experiment, fragment, session, step, try, statement, operation, outcome, get(observed, 0) AS row_count,
    CASE WHEN operation <> 'update' THEN get(observed, 1) END AS hash
FROM sealed_operations WHERE statement IS NOT NULL AND outcome = 'ok'
