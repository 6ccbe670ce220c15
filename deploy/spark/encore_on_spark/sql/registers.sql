-- DuckDB's: ad66e3978590
SELECT
    experiment, fragment, item, owner, element,
    count(*) AS written_values,
    sum(reads) AS reads,
    max(gamma_ns) AS gamma_ns,
    max(gamma_ns) = 0 AS linearizable
FROM register_values
GROUP BY experiment, fragment, item, owner, element
