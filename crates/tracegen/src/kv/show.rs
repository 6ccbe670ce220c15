//! What `trace show` says of records and draws.

use schemas::manifest::Manifest;
use schemas::spec::SpecError;
use schemas::workload::kv::{Data, Distribution, KeyOrder, KvStatistics, KvWorkload, LengthDistribution};

use crate::core::show::{Facts, grouped, shares_table};

/// What there is to say of a trace set.
pub(crate) fn facts(manifest: &Manifest) -> Result<Facts, SpecError> {
    let KvWorkload { data, access, transactions } = KvWorkload::of(&manifest.spec)?;
    let statistics = statistics(manifest);
    let drawn = match access.distribution {
        Distribution::Uniform => "uniform".to_string(),
        Distribution::Zipfian => "zipfian, 0.99, scattered".to_string(),
        Distribution::Latest => "latest".to_string(),
        Distribution::Sequential => "one after the other".to_string(),
        Distribution::Exponential => format!(
            "exponential, {}% to the latest {}%",
            access.exponential_percentile,
            access.exponential_data_share * 100.0
        ),
        Distribution::Hotspot => format!(
            "hotspot, {}% to {}% of them",
            access.hotspot_access_share * 100.0,
            access.hotspot_data_share * 100.0
        ),
    };
    let scans = length(access.scan_length, access.scan_length_min, access.scan_length_max);
    let changes =
        format!("{} inserted, {} deleted", grouped(statistics.inserted_records), grouped(statistics.deleted_records));
    let mut about = about_records(&data, &format!("drawn {drawn}"));
    about.extend([("scans", format!("of {scans} records")), ("changes", changes)]);
    if let Some(transactions) = transactions {
        let aborts = manifest.operations_by_name.get("abort").copied().unwrap_or(0);
        let what = format!(
            "each session is one; {} of {} end with abort (asked for: {}%)",
            grouped(aborts),
            grouped(manifest.transactions()),
            transactions.abort_share * 100.0
        );
        about.push(("transactions", what));
    }
    let draws = [("hottest record", statistics.hottest), ("hottest 1% of records", statistics.top_hundredth)];
    let draws = format!(
        "{}\n(distribution: before the first session; expected: among the records that exist at each draw)\n\
         {} of the records are drawn\nthreads that this trace can keep busy: {} (access.clients)",
        shares_table(&draws),
        grouped(statistics.drawn_records),
        grouped(manifest.active_threads_max)
    );
    Ok(Facts { about, draws, distributions: Vec::new() })
}

/// What there is to say of the records; `how` says how they are drawn.
pub(crate) fn about_records(data: &Data, how: &str) -> Vec<(&'static str, String)> {
    let order = match data.key_order {
        KeyOrder::Hashed => "hashed",
        KeyOrder::HashedGo => "hashed as by go-ycsb",
        KeyOrder::Ordered => "ordered",
    };
    let bytes = length(data.field_length, data.field_bytes_min, data.field_bytes);
    vec![
        ("records", format!("{} from number {}, {how}", grouped(data.records), data.first_record)),
        ("each record", format!("{} fields of {bytes} bytes", data.fields)),
        ("keys", format!("user and a number, {order}, {} digits at least", data.key_digits)),
    ]
}

fn statistics(manifest: &Manifest) -> KvStatistics {
    let statistics = manifest.statistics_of::<KvWorkload>();
    statistics.unwrap_or_else(|e| unreachable!("the statistics are checked with the manifest: {e}"))
}

fn length(distribution: LengthDistribution, least: u32, most: u32) -> String {
    match distribution {
        LengthDistribution::Constant => most.to_string(),
        LengthDistribution::Uniform => format!("{least} to {most}"),
        LengthDistribution::Zipfian => format!("{least} to {most}, zipfian"),
    }
}
