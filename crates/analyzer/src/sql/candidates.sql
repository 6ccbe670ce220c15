-- The writes of an item, or of an element of a list, that did not start after a read's end,
-- latest end first. A write with an unknown outcome has no end: it may take effect at any
-- later time.
SELECT
    session, step, operation, outcome, start_ns, end_ns, change
FROM item_updates
WHERE experiment = ?
    AND fragment = ?
    AND item = ?
    AND owner = ?
    AND element IS NOT DISTINCT FROM ?
    AND start_ns <= ?
ORDER BY outcome = 'unknown' DESC, end_ns DESC, start_ns DESC, session DESC, step DESC;
