-- DuckDB's: 99968a2c6346
WITH begins AS (
    SELECT experiment, fragment, session, txn, try, attempts > 0 AS is_atomic
    FROM sealed_operations
    WHERE operation = 'begin'
),
commits AS (
    SELECT experiment, fragment, session, txn, try, outcome AS commit_outcome
    FROM sealed_operations
    WHERE operation = 'commit'
),
balances AS (
    -- A negative mask says that the balance is the last number.
    SELECT experiment, fragment, session, txn, try, step, key, try_element_at(observed, -1) AS balance
    FROM sealed_operations
    WHERE operation = 'read' AND outcome = 'ok' AND get(observed, 0) < 0
),
released AS (
    SELECT w.experiment, w.fragment, w.session, w.txn, w.try, w.step, max_by(r.balance, r.step) AS balance
    FROM sealed_operations AS w
    JOIN balances AS r
        ON r.experiment = w.experiment AND r.fragment = w.fragment AND r.session = w.session
        AND r.txn = w.txn AND r.try = w.try AND r.key = w.key AND r.step < w.step
    WHERE w.operation = 'delete'
    GROUP BY w.experiment, w.fragment, w.session, w.txn, w.try, w.step
)
SELECT
    w.experiment, w.fragment, w.session, w.step, w.try, w.operation, w.outcome, w.start_ns, w.key,
    CASE w.operation WHEN 'delete' THEN -r.balance ELSE w.delta END AS change,
    w.outcome = 'unknown' OR (b.is_atomic AND c.commit_outcome = 'unknown') AS unknown
FROM sealed_operations AS w
JOIN begins AS b
    ON w.experiment = b.experiment AND w.fragment = b.fragment AND w.session = b.session AND w.txn = b.txn AND w.try = b.try
LEFT JOIN commits AS c
    ON w.experiment = c.experiment AND w.fragment = c.fragment AND w.session = c.session AND w.txn = c.txn AND w.try = c.try
LEFT JOIN released AS r
    ON w.experiment = r.experiment AND w.fragment = r.fragment AND w.session = r.session AND w.txn = r.txn
    AND w.try = r.try AND w.step = r.step
WHERE w.operation IN ('insert', 'update', 'delete') AND w.outcome IN ('ok', 'unknown')
    AND (NOT b.is_atomic OR c.commit_outcome IN ('ok', 'unknown'))
