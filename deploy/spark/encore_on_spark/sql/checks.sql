-- DuckDB's: b938373c6413
SELECT CAST(experiment AS BIGINT) AS experiment, * EXCEPT (experiment) FROM files_of_checks
