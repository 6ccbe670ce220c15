-- DuckDB's: 1caf735cabdc
CREATE OR REPLACE TEMPORARY FUNCTION is_checked_read(operation STRING, counts_as STRING, try_end STRING) RETURNS BOOLEAN
RETURN operation = 'read' AND counts_as = 'ok' AND NOT (try_end <=> 'abort')
