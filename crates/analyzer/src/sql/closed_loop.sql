-- In a closed loop no session has a due time, so none is late.
CREATE VIEW operations AS
SELECT *, end_ns - start_ns AS service_ns, NULL::BIGINT AS queued_ns, NULL::BIGINT AS late_ns
FROM sealed_operations;
