-- One row for each operation that changes the money in the records: an insert puts a balance in, an update
-- adds its delta, and a delete takes out the balance that its session has read in the same try. Rows of
-- transactions that did not commit are left out; `unknown` says that an operation may not have happened.
CREATE VIEW money_changes AS
WITH begins AS (
    SELECT experiment, fragment, session, txn, try, attempts > 0 AS is_atomic
    FROM operations
    WHERE operation = 'begin'
),
commits AS (
    SELECT experiment, fragment, session, txn, try, outcome AS commit_outcome
    FROM operations
    WHERE operation = 'commit'
),
balances AS (
    -- A negative mask says that the balance is the last number.
    SELECT experiment, fragment, session, txn, try, step, key, observed[-1] AS balance
    FROM operations
    WHERE operation = 'read' AND outcome = 'ok' AND observed[1] < 0
)
SELECT
    w.experiment, w.fragment, w.session, w.step, w.try, w.operation, w.outcome, w.start_ns, w.key,
    CASE w.operation WHEN 'delete' THEN -(
        SELECT arg_max(r.balance, r.step) FROM balances AS r
        WHERE r.experiment = w.experiment AND r.fragment = w.fragment AND r.session = w.session
            AND r.txn = w.txn AND r.try = w.try AND r.key = w.key AND r.step < w.step
    ) ELSE w.delta END AS change,
    w.outcome = 'unknown' OR (b.is_atomic AND c.commit_outcome = 'unknown') AS unknown
FROM operations AS w
JOIN begins AS b USING (experiment, fragment, session, txn, try)
LEFT JOIN commits AS c USING (experiment, fragment, session, txn, try)
WHERE w.operation IN ('insert', 'update', 'delete') AND w.outcome IN ('ok', 'unknown')
    AND (NOT b.is_atomic OR c.commit_outcome IN ('ok', 'unknown'));
