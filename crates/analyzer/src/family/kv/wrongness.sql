CASE
    WHEN u.item = 'field' AND u.low > 0 THEN u.start_ns - coalesce(
        (
            SELECT max(w.visible_ns) FROM operations AS w
            WHERE w.experiment = u.experiment AND w.fragment = write_fragment(u.low)
                AND w.session = write_session(u.low) AND w.step = write_step(u.low)
        ),
        -- The write is of an earlier experiment.
        0
    )
END
