-- One row for each second, from the experiment's start, and class of anomalies that ended in it. `leaves` is
-- the strongest level of isolation that allows the class; NULL if none does.
CREATE TABLE isolation_anomalies (
    experiment BIGINT, threads BIGINT, second BIGINT, class VARCHAR, leaves VARCHAR, anomalies BIGINT
);
