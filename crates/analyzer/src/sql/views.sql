-- The sealed tables of a run. What stands in braces becomes a pattern of Parquet files,
-- quoted, which may hold a line break: none of it may stand in a comment.
CREATE VIEW operations AS
SELECT experiment, fragment, * EXCLUDE (experiment, fragment)
FROM read_parquet({operations}, hive_partitioning = true, hive_types = {'experiment': BIGINT, 'fragment': BIGINT});

CREATE VIEW unpredictable AS
SELECT experiment, fragment, * EXCLUDE (experiment, fragment)
FROM read_parquet({unpredictable}, hive_partitioning = true, hive_types = {'experiment': BIGINT, 'fragment': BIGINT});
