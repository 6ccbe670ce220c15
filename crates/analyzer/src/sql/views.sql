-- The sealed tables of a run. Text in braces is replaced by a quoted pattern of Parquet
-- files. The pattern may contain a line break, so it must not be used in a comment.
CREATE VIEW operations AS
SELECT experiment, fragment, * EXCLUDE (experiment, fragment)
FROM read_parquet({operations}, hive_partitioning = true, hive_types = {'experiment': BIGINT, 'fragment': BIGINT});

CREATE VIEW unpredictable AS
SELECT experiment, fragment, * EXCLUDE (experiment, fragment)
FROM read_parquet({unpredictable}, hive_partitioning = true, hive_types = {'experiment': BIGINT, 'fragment': BIGINT});
