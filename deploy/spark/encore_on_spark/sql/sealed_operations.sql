-- DuckDB's: 13eabaef76bd
SELECT
    * EXCEPT (counts_as, snapshot_ns, visible_ns, try_end),
    coalesce(counts_as, outcome) AS counts_as,
    coalesce(snapshot_ns, start_ns) AS snapshot_ns,
    coalesce(visible_ns, end_ns) AS visible_ns,
    try_end
FROM files_of_operations
