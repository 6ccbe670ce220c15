-- BG's freshness confidence, one row an experiment and age: of the items read so
-- long after the last completed update, how many showed all completed updates.
-- An item is a friend or pending count or a whole list; what each action changes
-- and observes is as in the table of actions of schemas/README.md.
CREATE VIEW freshness AS
WITH updates AS (
    SELECT
        experiment,
        fragment,
        end_ns,
        unnest(CASE "action"
            WHEN 'invite_friend' THEN
                [{item: 'pending_count', owner: target}, {item: 'pending', owner: target}]
            WHEN 'accept_friend_request' THEN
                [{item: 'pending_count', owner: socialite}, {item: 'pending', owner: socialite},
                 {item: 'friend_count', owner: socialite}, {item: 'friend_count', owner: target},
                 {item: 'friends', owner: socialite}, {item: 'friends', owner: target}]
            WHEN 'reject_friend_request' THEN
                [{item: 'pending_count', owner: socialite}, {item: 'pending', owner: socialite}]
            WHEN 'thaw_friendship' THEN
                [{item: 'friend_count', owner: socialite}, {item: 'friend_count', owner: target},
                 {item: 'friends', owner: socialite}, {item: 'friends', owner: target}]
            WHEN 'post_comment' THEN [{item: 'comments', owner: target}]
            WHEN 'delete_comment' THEN [{item: 'comments', owner: target}]
        END, recursive := true)
    FROM operations
    WHERE outcome = 'ok'
),
reads AS (
    SELECT
        experiment,
        fragment,
        session,
        step,
        start_ns,
        unpredictable,
        unnest(CASE
            WHEN "action" = 'view_profile' AND socialite = target THEN
                [{item: 'friend_count', owner: target}, {item: 'pending_count', owner: target}]
            WHEN "action" = 'view_profile' THEN [{item: 'friend_count', owner: target}]
            WHEN "action" = 'list_friends' THEN [{item: 'friends', owner: target}]
            WHEN "action" = 'view_friend_requests' THEN [{item: 'pending', owner: socialite}]
            WHEN "action" = 'view_comments' THEN [{item: 'comments', owner: target}]
        END, recursive := true)
    FROM operations
    WHERE outcome = 'ok' AND NOT warmup AND NOT drained
),
wrong AS (
    SELECT experiment, fragment, session, step, item FROM unpredictable WHERE NOT warmup AND NOT drained GROUP BY ALL
),
aged AS (
    SELECT r.*, (r.start_ns - u.end_ns) // 1000 AS age_us
    FROM reads AS r
    ASOF JOIN updates AS u
        ON r.experiment = u.experiment AND r.fragment = u.fragment AND r.item = u.item AND r.owner = u.owner
        AND r.start_ns > u.end_ns
),
judged AS (
    SELECT
        a.experiment,
        CASE WHEN a.age_us = 0 THEN 0 ELSE CAST(floor(log2(a.age_us)) AS INTEGER) + 1 END AS bucket,
        w.item IS NULL AS is_fresh
    FROM aged AS a
    LEFT JOIN wrong AS w
        ON a.experiment = w.experiment AND a.fragment = w.fragment AND a.session = w.session AND a.step = w.step
        AND a.item = w.item
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
