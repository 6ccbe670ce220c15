-- BG's freshness confidence, one row per experiment and range of time since the last
-- completed update: the items that were read, and how many of them showed all completed
-- updates. Items of one unit count as one: it is as old as the youngest of them.
CREATE VIEW freshness AS
WITH reads AS (
    SELECT experiment, fragment, session, step, start_ns, item, owner, coalesce(element, -1) AS element, unit
    FROM item_reads
    WHERE NOT warmup AND NOT drained
),
-- A read of all elements of an item shows the updates of any of them.
updates AS (
    SELECT experiment, fragment, end_ns, item, owner, -1 AS element FROM item_updates WHERE outcome = 'ok'
    UNION ALL
    SELECT experiment, fragment, end_ns, item, owner, element
    FROM item_updates
    WHERE outcome = 'ok' AND element IS NOT NULL
),
wrong AS (
    SELECT experiment, fragment, session, step, item FROM unpredictable WHERE NOT warmup AND NOT drained GROUP BY ALL
),
wrong_units AS (
    SELECT DISTINCT r.experiment, r.fragment, r.session, r.step, r.owner, r.unit
    FROM reads AS r
    SEMI JOIN wrong AS w
        ON r.experiment = w.experiment AND r.fragment = w.fragment AND r.session = w.session AND r.step = w.step
        AND r.item = w.item
),
aged AS (
    SELECT
        r.experiment, r.fragment, r.session, r.step, r.owner, r.unit,
        min(r.start_ns - u.end_ns) // 1000 AS age_us
    FROM reads AS r
    ASOF JOIN updates AS u
        ON r.experiment = u.experiment AND r.fragment = u.fragment AND r.item = u.item AND r.owner = u.owner
        AND r.element = u.element AND r.start_ns > u.end_ns
    GROUP BY ALL
),
judged AS (
    SELECT
        a.experiment,
        CASE WHEN a.age_us = 0 THEN 0 ELSE CAST(floor(log2(a.age_us)) AS INTEGER) + 1 END AS bucket,
        w.unit IS NULL AS is_fresh
    FROM aged AS a
    LEFT JOIN wrong_units AS w
        ON a.experiment = w.experiment AND a.fragment = w.fragment AND a.session = w.session AND a.step = w.step
        AND a.owner = w.owner AND a.unit = w.unit
    -- An answer of the wrong shape says nothing about its items.
    ANTI JOIN (FROM wrong WHERE item = 'shape') AS misshapen
        ON a.experiment = misshapen.experiment AND a.fragment = misshapen.fragment
        AND a.session = misshapen.session AND a.step = misshapen.step
)
SELECT
    experiment,
    CASE WHEN bucket = 0 THEN 0 ELSE 1::BIGINT << (bucket - 1) END AS from_us,
    1::BIGINT << bucket AS to_us,
    count(*) AS reads,
    count(*) FILTER (is_fresh) AS fresh,
    100.0 * count(*) FILTER (is_fresh) / count(*) AS fresh_percent
FROM judged
GROUP BY experiment, bucket;
