-- Writes that name an id and did not start after a read's end, latest end first.
-- Which of them change the read's item is for the caller to tell. A write of
-- unknown fate is open for ever.
SELECT
    session, step, "action", socialite, target, "comment", outcome, start_ns, end_ns
FROM operations
WHERE experiment = ?
    AND fragment = ?
    AND outcome IN ('ok', 'unknown')
    AND (socialite = ? OR target = ?)
    AND start_ns <= ?
    AND list_contains(CAST(CAST(? AS JSON) AS VARCHAR[]), "action")
ORDER BY outcome = 'unknown' DESC, end_ns DESC, start_ns DESC, session DESC, step DESC;
