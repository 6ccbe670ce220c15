-- DuckDB's: cb5456da2066
-- The place in the trace of the write whose id a read observed.
CREATE OR REPLACE TEMPORARY FUNCTION write_fragment(id BIGINT) RETURNS BIGINT RETURN shiftright(id - 1, 48)
