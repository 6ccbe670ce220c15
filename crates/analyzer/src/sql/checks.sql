-- One row per condition of the data that was to be checked after an experiment. Text in braces is replaced by a list
-- of quoted patterns of Parquet files.
CREATE VIEW checks AS
SELECT CAST(experiment AS BIGINT) AS experiment, * EXCLUDE (experiment)
FROM read_parquet({checks});
