-- The sealed tables of a run. {operations} and {unpredictable} are patterns of
-- Parquet files, quoted.
CREATE VIEW operations AS
SELECT experiment, fragment, * EXCLUDE (experiment, fragment)
FROM read_parquet({operations}, hive_partitioning = true, hive_types = {'experiment': BIGINT, 'fragment': BIGINT});

CREATE VIEW unpredictable AS
SELECT experiment, fragment, * EXCLUDE (experiment, fragment)
FROM read_parquet({unpredictable}, hive_partitioning = true, hive_types = {'experiment': BIGINT, 'fragment': BIGINT});
