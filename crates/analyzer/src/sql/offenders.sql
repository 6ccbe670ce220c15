-- The items farthest from what they should have been; the order is total, so
-- that the same run always shows the same ones. What the warm-up read is not
-- part of the figures that they explain.
SELECT
    fragment, session, step, "action", start_ns, end_ns, item, owner, element, observed, low, high
FROM unpredictable
WHERE experiment = ? AND NOT warmup AND NOT drained
ORDER BY greatest(low - observed, observed - high) DESC, start_ns, fragment, session, step, item, element
LIMIT ?;
