-- One row per item that was read after an experiment. Text in braces is replaced as in views.sql.
CREATE VIEW closing_reads AS
SELECT experiment, fragment, * EXCLUDE (experiment, fragment)
FROM read_parquet({closing_reads}, hive_partitioning = true, hive_types = {'experiment': BIGINT, 'fragment': BIGINT});
