-- One row for each read of a register whose write is known: how stale it was, as `encore analyze consistency`
-- has it. Reads of values that no write of the experiment wrote are left out.
CREATE VIEW read_staleness AS
WITH writes AS (
    SELECT experiment, fragment, item, owner, coalesce(element, -1) AS place, value, start_ns, end_ns, outcome
    FROM register_writes
),
known AS (
    SELECT
        * EXCLUDE (outcome),
        max(start_ns) OVER earlier AS newest_start_ns
    FROM writes
    WHERE outcome = 'ok'
    WINDOW earlier AS (PARTITION BY experiment, fragment, item, owner, place ORDER BY end_ns)
),
seen AS (
    SELECT
        r.*,
        coalesce(r.element, -1) AS place,
        -- Nothing is newer than a write of unknown fate.
        CASE WHEN r.value = 0 THEN -1 WHEN w.outcome = 'ok' THEN w.end_ns ELSE 9223372036854775807 END AS seen_end_ns
    FROM register_reads AS r
    LEFT JOIN writes AS w
        ON r.experiment = w.experiment AND r.fragment = w.fragment AND r.item = w.item AND r.owner = w.owner
        AND coalesce(r.element, -1) = w.place AND r.value = w.value
    WHERE r.value = 0 OR w.value IS NOT NULL
),
aged AS (
    SELECT s.*, k.end_ns AS last_end_ns, coalesce(k.newest_start_ns > s.seen_end_ns, false) AS is_stale
    FROM seen AS s
    ASOF LEFT JOIN known AS k
        ON s.experiment = k.experiment AND s.fragment = k.fragment AND s.item = k.item AND s.owner = k.owner
        AND s.place = k.place AND s.start_ns > k.end_ns
),
newer AS (
    SELECT
        a.experiment, a.fragment, a.session, a.step, a.item, a.owner, a.place,
        count(*) AS k,
        a.start_ns - min(k.end_ns) AS t_ns
    FROM aged AS a
    JOIN known AS k
        ON a.experiment = k.experiment AND a.fragment = k.fragment AND a.item = k.item AND a.owner = k.owner
        AND a.place = k.place AND k.start_ns > a.seen_end_ns AND k.end_ns < a.start_ns
    WHERE a.is_stale
    GROUP BY a.experiment, a.fragment, a.session, a.step, a.item, a.owner, a.place, a.start_ns
)
SELECT
    a.experiment, a.fragment, a.session, a.step, a.thread, a.actor, a.start_ns, a.end_ns, a.warmup, a.drained,
    a.item, a.owner, a.element, a.value,
    a.start_ns - a.last_end_ns AS age_ns,
    coalesce(n.k, 0) AS k_staleness,
    coalesce(n.t_ns, 0) AS t_staleness_ns
FROM aged AS a
LEFT JOIN newer AS n
    ON a.experiment = n.experiment AND a.fragment = n.fragment AND a.session = n.session AND a.step = n.step
    AND a.item = n.item AND a.owner = n.owner AND a.place = n.place;

-- One row for each register that was read: its reads in the measured part, and how stale they were.
CREATE VIEW register_staleness AS
SELECT
    experiment, fragment, item, owner, element,
    count(*) AS reads,
    count(*) FILTER (k_staleness > 0) AS stale_reads,
    max(k_staleness) AS k_staleness_max,
    max(t_staleness_ns) AS t_staleness_max_ns
FROM read_staleness
WHERE NOT warmup AND NOT drained
GROUP BY experiment, fragment, item, owner, element;
