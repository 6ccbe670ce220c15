-- The most wrong items; their family says how wrong they are. The order is total, so the same
-- run always shows the same items. Reads outside the measured part are excluded, because
-- the figures that these items explain exclude them.
SELECT
    fragment, session, step, operation, start_ns, end_ns, item, owner, element, observed, low, high
FROM unpredictable AS u
WHERE experiment = ? AND NOT warmup AND NOT drained
ORDER BY {wrongness} DESC NULLS FIRST, start_ns, fragment, session, step, item, element
LIMIT ?;
