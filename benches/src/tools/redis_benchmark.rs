//! redis-benchmark, which comes with the server: reads of whole records of a table of its own. It is the
//! leanest client that there is: one loop in C that draws a number, and skips over the answer.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use super::{on_path, version};
use crate::measure;
use crate::sample::Figures;

/// Its name in the samples.
pub const NAME: &str = "redis-benchmark";

/// Its settings, for the report.
pub const SETTINGS: &str = "HMGET of all fields of records that it draws uniformly; a table of its own; as many operations \
                            as Encore's run before; answers are not looked at, only the time is; not a peer: what a request costs \
                            at least; workload C";

/// The number of its own database. Encore has 0, go-ycsb 1.
const DATABASE: &str = "2";

/// Fields of a record.
const FIELDS: usize = 10;

/// Bytes of a field.
const FIELD_BYTES: usize = 100;

/// The program.
pub struct RedisBenchmark {
    program: PathBuf,
}

impl RedisBenchmark {
    /// The program on PATH.
    pub fn find() -> anyhow::Result<RedisBenchmark> {
        Ok(RedisBenchmark { program: on_path(NAME).context("redis-benchmark is not installed")? })
    }

    /// Its version.
    pub fn version(&self) -> String {
        version(&self.program, &["--version"])
    }

    /// Makes a table of this many records.
    pub fn load(&self, address: &str, records: u64) -> anyhow::Result<()> {
        let fields: String = fields().map(|field| format!(", '{field}', value")).collect();
        let script = format!(
            "local value = string.rep('v', {FIELD_BYTES}) \
             for i = 0, {records} - 1 do redis.call('HSET', string.format('user%012d', i){fields}) end return 1"
        );
        measure::run(self.command(address)?.args(["-n", "1", "-c", "1", "EVAL", &script, "0"]))?;
        Ok(())
    }

    /// Measures this many reads.
    pub fn run(&self, address: &str, records: u64, threads: u32, operations: f64) -> anyhow::Result<Figures> {
        let operations = operations.max(threads.into()).round();
        let mut command = self.command(address)?;
        command.args(["-c", &threads.to_string(), "-n", &operations.to_string(), "-r", &records.to_string(), "--csv"]);
        let used = measure::run(command.args(["HMGET", "user__rand_int__"]).args(fields()))?;
        let [per_s, mean_ms, p50_ms, p99_ms] = read(&used.output)?;
        let all = Figures::of(&used, operations, per_s);
        let us = |ms: f64| Some(ms * 1e3);
        Ok(Figures { mean_us: us(mean_ms), p50_us: us(p50_ms), p99_us: us(p99_ms), ..all })
    }

    fn command(&self, address: &str) -> anyhow::Result<Command> {
        let (host, port) = address.rsplit_once(':').context("an address is HOST:PORT")?;
        let mut command = Command::new(&self.program);
        command.args(["-h", host, "-p", port, "--dbnum", DATABASE]);
        Ok(command)
    }
}

fn fields() -> impl Iterator<Item = String> {
    (0..FIELDS).map(|field| format!("field{field}"))
}

/// Operations a second, and mean, p50 and p99 in milliseconds, of the row of its CSV.
fn read(output: &str) -> anyhow::Result<[f64; 4]> {
    let row = output.lines().last().context("redis-benchmark printed nothing")?;
    // The name of the test, which comes first, is the command, and has no comma.
    let figures: Vec<f64> = row.split(',').skip(1).filter_map(|cell| cell.trim_matches('"').parse().ok()).collect();
    match figures[..] {
        [per_s, mean_ms, _least, p50_ms, _p95, p99_ms, _most] => Ok([per_s, mean_ms, p50_ms, p99_ms]),
        _ => anyhow::bail!("redis-benchmark's CSV is not as expected: {row}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_row() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\
                   \"p99_latency_ms\",\"max_latency_ms\"\n\
                   \"HMGET user__rand_int__ field0\",\"69252.08\",\"0.503\",\"0.192\",\"0.495\",\"0.703\",\"0.975\",\"4.535\"\n";
        assert_eq!(read(csv).unwrap(), [69252.08, 0.503, 0.495, 0.975]);
        assert!(read("\"test\",\"rps\"").is_err());
    }
}
