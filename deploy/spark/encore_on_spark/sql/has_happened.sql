-- DuckDB's: 682da52c8583
CREATE OR REPLACE TEMPORARY FUNCTION has_happened(counts_as STRING, try_end STRING) RETURNS BOOLEAN
RETURN counts_as IN ('ok', 'unknown') AND NOT (try_end <=> 'abort')
