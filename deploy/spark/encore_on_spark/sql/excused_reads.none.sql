-- DuckDB's: a51e93b0cbcc
SELECT 0L AS experiment, 0L AS fragment, 0L AS session, CAST(0 AS SMALLINT) AS step, true AS excused
WHERE false
