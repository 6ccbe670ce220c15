-- DuckDB's: dc21744730a7
-- Spark has no as-of join. Instead reads and updates of an item stand in one order of time, a read before an update at
-- the same time, and each read takes the newest update before it.
WITH reads AS (
    SELECT experiment, fragment, session, step, start_ns, item, owner, coalesce(element, -1) AS element, unit
    FROM item_reads
    WHERE NOT warmup AND NOT drained
),
updates AS (
    SELECT experiment, fragment, end_ns, item, owner, -1L AS element FROM item_updates WHERE outcome = 'ok'
    UNION ALL
    SELECT experiment, fragment, end_ns, item, owner, element
    FROM item_updates
    WHERE outcome = 'ok' AND element IS NOT NULL
),
wrong AS (
    SELECT DISTINCT experiment, fragment, session, step, item FROM unpredictable WHERE NOT warmup AND NOT drained
),
wrong_units AS (
    SELECT DISTINCT r.experiment, r.fragment, r.session, r.step, r.owner, r.unit
    FROM reads AS r
    LEFT SEMI JOIN wrong AS w
        ON r.experiment = w.experiment AND r.fragment = w.fragment AND r.session = w.session AND r.step = w.step
        AND r.item = w.item
),
in_order AS (
    SELECT
        experiment, fragment, session, step, owner, unit, is_update, at_ns,
        max(CASE WHEN is_update = 1 THEN at_ns END) OVER (
            PARTITION BY experiment, fragment, item, owner, element ORDER BY at_ns, is_update ROWS UNBOUNDED PRECEDING
        ) AS updated_ns
    FROM (
        SELECT experiment, fragment, session, step, item, owner, element, unit, 0 AS is_update, start_ns AS at_ns
        FROM reads
        UNION ALL
        SELECT
            experiment, fragment, CAST(NULL AS BIGINT), CAST(NULL AS SMALLINT), item, owner, element,
            CAST(NULL AS STRING), 1, end_ns
        FROM updates
    )
),
aged AS (
    SELECT
        experiment, fragment, session, step, owner, unit,
        min(at_ns - updated_ns) div 1000 AS age_us
    FROM in_order
    WHERE is_update = 0 AND updated_ns IS NOT NULL
    GROUP BY experiment, fragment, session, step, owner, unit
),
judged AS (
    SELECT
        a.experiment,
        -- The number of binary digits: a logarithm of base 2 that does not round.
        CASE WHEN a.age_us = 0 THEN 0 ELSE length(bin(a.age_us)) END AS bucket,
        w.unit IS NULL AS is_fresh
    FROM aged AS a
    LEFT JOIN wrong_units AS w
        ON a.experiment = w.experiment AND a.fragment = w.fragment AND a.session = w.session AND a.step = w.step
        AND a.owner = w.owner AND a.unit = w.unit
    LEFT ANTI JOIN (SELECT * FROM wrong WHERE item = 'shape') AS misshapen
        ON a.experiment = misshapen.experiment AND a.fragment = misshapen.fragment
        AND a.session = misshapen.session AND a.step = misshapen.step
)
SELECT
    experiment,
    CASE WHEN bucket = 0 THEN 0L ELSE shiftleft(1L, bucket - 1) END AS from_us,
    shiftleft(1L, bucket) AS to_us,
    count(*) AS reads,
    count(*) FILTER (WHERE is_fresh) AS fresh,
    100.0D * count(*) FILTER (WHERE is_fresh) / count(*) AS fresh_percent
FROM judged
GROUP BY experiment, bucket
