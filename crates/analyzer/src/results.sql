-- The last try of each statement of one experiment of this run, and of one of another.
CREATE VIEW a_last AS
SELECT fragment, session, step, statement, operation, outcome, observed FROM operations
WHERE experiment = {first} AND statement IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY fragment, session, step ORDER BY "try" DESC) = 1;

CREATE VIEW b_last AS
SELECT fragment, session, step, outcome, observed FROM read_parquet({second}, hive_partitioning = true)
WHERE statement IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY fragment, session, step ORDER BY "try" DESC) = 1;

-- An operation that was never sent in one of the runs is not compared.
CREATE TABLE compared AS
SELECT
    a.fragment, a.session, a.step, a.statement, a.operation::VARCHAR AS operation,
    a.outcome::VARCHAR AS a_outcome, a.observed AS a_observed,
    b.outcome::VARCHAR AS b_outcome, b.observed AS b_observed,
    a.outcome::VARCHAR <> b.outcome::VARCHAR OR a.observed[1:2] IS DISTINCT FROM b.observed[1:2] AS differs
FROM a_last a JOIN b_last b USING (fragment, session, step)
WHERE a.outcome <> 'skipped' AND b.outcome <> 'skipped';

CREATE VIEW totals AS
SELECT
    count(*)::BIGINT AS compared, count(*) FILTER (NOT differs)::BIGINT AS equal,
    ((SELECT count(*) FROM a_last) + (SELECT count(*) FROM b_last) - 2 * count(*))::BIGINT AS only_one
FROM compared;

CREATE VIEW by_statement AS
SELECT
    statement::BIGINT AS statement, count(*)::BIGINT AS compared,
    count(*) FILTER (a_outcome <> b_outcome)::BIGINT AS outcomes,
    count(*) FILTER (differs AND a_outcome = b_outcome AND a_observed[1] IS DISTINCT FROM b_observed[1])::BIGINT AS rows,
    count(*) FILTER (differs AND a_outcome = b_outcome AND a_observed[1] IS NOT DISTINCT FROM b_observed[1])::BIGINT
        AS contents
FROM compared GROUP BY statement;
