-- DuckDB's: 9a3a0e59a2dd
SELECT * FROM files_of_closing_reads
