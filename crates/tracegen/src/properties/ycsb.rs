//! Converts YCSB's core workload: each of its keys becomes one of the `kv` family, with YCSB's own
//! default where a file does not set it.

use schemas::spec::Spec;
use schemas::workload::kv::{Access, Data, Distribution, KeyOrder, KvWorkload, LengthDistribution};

use super::table::Table;
use super::{Converted, Origins, PropertiesError, Property, check_sum};

pub(super) type Draft = super::Draft<KvWorkload>;

/// Sets a value of the workload.
type Set<T> = fn(&mut KvWorkload, T);

/// Keys of a run, and what does the same in Encore.
const RUN: [(&str, &str); 27] = [
    ("threadcount", "use `encore run --threads N`, or `encore rate`, which finds the number"),
    ("target", "use `encore run --target N`, in sessions a second over all threads"),
    ("maxexecutiontime", "use the time in `encore rate --sla \"95% < 100ms, 0.1% unpredictable, 60s\"`"),
    ("db", "use `encore rate --store URL`"),
    ("dotransactions", "`encore replay load` loads the records, and `encore run` or `encore rate` runs the sessions"),
    ("exportfile", "use `encore rate --runs DIR`"),
    ("exporter", "use `encore analyze summary --json`, or `encore analyze export`"),
    ("measurementtype", "every operation is logged; `encore analyze export --format hgrm` writes a histogram"),
    ("measurement.interval", "start and end of every operation are logged"),
    ("measurement.trackjvm", "the replayer has no JVM"),
    ("measurement.raw.output_file", "every operation is logged; use the view `operations` of `encore analyze sql`"),
    ("measurement.raw.no_summary", "use `encore analyze sql`, and `encore analyze summary` for the summary"),
    ("measurement.histogram.verbose", "use `encore analyze export --format hgrm`"),
    ("histogram.buckets", "use `encore analyze export --format hgrm`, whose buckets follow from the response times"),
    ("hdrhistogram.fileoutput", "use `encore analyze export --format hgrm`"),
    ("hdrhistogram.output.path", "use `encore analyze export --format hgrm`"),
    ("hdrhistogram.percentiles", "use `encore analyze sql RUN`, which answers any percentile"),
    ("timeseries.granularity", "use the view `timeline` of `encore analyze sql`"),
    ("reportlatencyforeacherror", "use the column `outcome` of the view `operations`"),
    ("latencytrackederrors", "use the column `outcome` of the view `operations`"),
    ("status", "use `encore rate --monitor SECONDS`"),
    ("status.interval", "use `encore rate --monitor SECONDS`"),
    ("label", "use `encore rate --name NAME`"),
    ("readallfieldsbyname", "the adapter of a store decides whether a read names its fields"),
    ("core_workload_insertion_retry_limit", "the adapter of a store decides which errors of a load it retries"),
    ("core_workload_insertion_retry_interval", "the adapter of a store decides which errors of a load it retries"),
    ("core_workload_insertion_keep_going_on_error", "a load that cannot insert a record ends with an error"),
];

/// The class of the workload, which decides that this converter reads the file.
const WITHOUT_MEANING: [&str; 1] = ["workload"];

/// Converts the entries of the table.
pub(super) fn convert(table: &mut Table) -> Result<Converted, PropertiesError> {
    let mut draft = draft(table)?;
    mix(table, &mut draft, &[])?;
    Ok(draft.converted(check))
}

/// The entries of the table as a draft, without its mix.
pub(super) fn draft(table: &mut Table) -> Result<Draft, PropertiesError> {
    let mut draft = Draft::new(without_values(), table);
    records(table, &mut draft)?;
    fields(table, &mut draft)?;
    access(table, &mut draft)?;
    scans(table, &mut draft)?;
    draft.set_sessions(table.number("operationcount")?);
    names(table, &mut draft)?;
    draft.note_keys(table, &RUN);
    table.ignore(&WITHOUT_MEANING);
    Ok(draft)
}

/// A workload without any values from files.
fn without_values() -> KvWorkload {
    KvWorkload {
        data: Data {
            records: 0,
            total_cash: None,
            first_record: 0,
            fields: 10,
            field_bytes: 100,
            field_bytes_min: 1,
            field_length: LengthDistribution::Constant,
            key_order: KeyOrder::Hashed,
            key_digits: 1,
        },
        access: Access::default(),
        transactions: None,
    }
}

/// Refuses files without records.
pub(super) fn check(spec: &Spec, origins: &Origins) -> Result<(), PropertiesError> {
    if KvWorkload::of(spec)?.data.records == 0 && origins.get("data.records").is_none() {
        let message = "the number of records is missing; add the file with recordcount, or --set data.records=1000";
        return Err(PropertiesError::Files { files: origins.files.clone(), message: message.into() });
    }
    Ok(())
}

pub(super) fn wrong(property: Property, message: &str) -> PropertiesError {
    PropertiesError::Value { property, message: message.into() }
}

/// A number of the files as a key of the specification.
fn number<T: std::str::FromStr>(
    table: &mut Table,
    draft: &mut Draft,
    key: &str,
    to: &str,
    set: impl FnOnce(&mut KvWorkload, T),
) -> Result<(), PropertiesError> {
    if let Some((value, property)) = table.number(key)? {
        set(&mut draft.spec.own, value);
        draft.origins.properties.insert(to.into(), property);
    }
    Ok(())
}

fn records(table: &mut Table, draft: &mut Draft) -> Result<(), PropertiesError> {
    let count = table.number::<u64>("recordcount")?;
    let start = table.number::<u64>("insertstart")?;
    let inserted = table.number::<u64>("insertcount")?;
    let first = start.as_ref().map_or(0, |(start, _)| *start);
    if let (Some((all, property)), Some((_, start))) = (&count, &start)
        && first >= *all
    {
        return Err(PropertiesError::Contradiction {
            first: Box::new(property.clone()),
            second: Box::new(start.clone()),
            advice:
                "recordcount is the number of records with those before insertstart; raise it, or lower insertstart"
                    .into(),
        });
    }
    let data = &mut draft.spec.own.data;
    data.first_record = first;
    draft.origin("data.first_record", start.as_ref().map(|(_, property)| property));
    let rest = count.as_ref().map(|(all, property)| (all - first.min(*all), property));
    let data = &mut draft.spec.own.data;
    match (&inserted, rest) {
        (Some((some, property)), Some((rest, all))) if *some > rest => {
            return Err(PropertiesError::Contradiction {
                first: Box::new(all.clone()),
                second: Box::new(property.clone()),
                advice: "recordcount must be at least insertstart and insertcount together".into(),
            });
        }
        (Some((some, property)), _) => {
            data.records = *some;
            draft.origin("data.records", Some(property));
            if rest.is_some_and(|(rest, _)| rest > *some) {
                draft.notes.push(format!(
                    "{property}: only these records are loaded and drawn; new records follow after the last of them, \
                     from number {} on, while YCSB inserts from recordcount on",
                    first.saturating_add(*some)
                ));
            }
        }
        (None, Some((rest, property))) => {
            data.records = rest;
            draft.origin("data.records", Some(property));
        }
        (None, None) => {}
    }
    if let Some(property) = table.get("insertorder") {
        draft.spec.own.data.key_order = match property.value.as_str() {
            "hashed" => KeyOrder::Hashed,
            "ordered" => KeyOrder::Ordered,
            _ => return Err(wrong(property, "unknown order; use hashed or ordered")),
        };
    }
    number(table, draft, "zeropadding", "data.key_digits", |own, digits| own.data.key_digits = digits)
}

fn fields(table: &mut Table, draft: &mut Draft) -> Result<(), PropertiesError> {
    number(table, draft, "fieldcount", "data.fields", |own, fields| own.data.fields = fields)?;
    number(table, draft, "fieldlength", "data.field_bytes", |own, bytes| own.data.field_bytes = bytes)?;
    number(table, draft, "minfieldlength", "data.field_bytes_min", |own, bytes| own.data.field_bytes_min = bytes)?;
    if let Some(distribution) = length(table, "fieldlengthdistribution", true)? {
        draft.spec.own.data.field_length = distribution;
    }
    let histogram = table.get("fieldlengthhistogram");
    if let Some(property) = histogram {
        draft.notes.push(format!("{property}: has no effect, since no distribution by histogram is asked for"));
    }
    let switches: [(&str, Set<bool>); 2] = [
        ("readallfields", |own, all| own.access.read_all_fields = all),
        ("writeallfields", |own, all| own.access.write_all_fields = all),
    ];
    for (key, set) in switches {
        if let Some((all, _)) = table.switch(key)? {
            set(&mut draft.spec.own, all);
        }
    }
    integrity(table, draft)
}

/// Values say which write they come from, whatever `dataintegrity` asks for. YCSB cannot have it with
/// lengths that differ.
fn integrity(table: &mut Table, draft: &mut Draft) -> Result<(), PropertiesError> {
    let Some((wanted, property)) = table.switch("dataintegrity")? else { return Ok(()) };
    if let (true, Some(lengths)) = (wanted, table.get("fieldlengthdistribution"))
        && lengths.value != "constant"
    {
        return Err(PropertiesError::Contradiction {
            first: Box::new(lengths),
            second: Box::new(property),
            advice:
                "YCSB checks values of constant length only; remove dataintegrity, since values are always checked \
                     here"
                    .into(),
        });
    }
    draft.notes.push(format!("{property}: has no effect; every value says which write it comes from"));
    Ok(())
}

/// A distribution of lengths.
fn length(table: &mut Table, key: &str, may_be_constant: bool) -> Result<Option<LengthDistribution>, PropertiesError> {
    let Some(property) = table.get(key) else { return Ok(None) };
    match property.value.as_str() {
        "constant" if may_be_constant => Ok(Some(LengthDistribution::Constant)),
        "uniform" => Ok(Some(LengthDistribution::Uniform)),
        "zipfian" => Ok(Some(LengthDistribution::Zipfian)),
        _ if may_be_constant => Err(wrong(property, "unsupported distribution; use constant, uniform or zipfian")),
        _ => Err(wrong(property, "unsupported distribution; use uniform or zipfian")),
    }
}

fn access(table: &mut Table, draft: &mut Draft) -> Result<(), PropertiesError> {
    if let Some(property) = table.get("requestdistribution") {
        draft.spec.own.access.distribution = match property.value.as_str() {
            "uniform" => Distribution::Uniform,
            "zipfian" => Distribution::Zipfian,
            "latest" => Distribution::Latest,
            "sequential" => Distribution::Sequential,
            "exponential" => Distribution::Exponential,
            "hotspot" => Distribution::Hotspot,
            _ => {
                let message =
                    "unsupported distribution; use uniform, zipfian, latest, sequential, exponential or hotspot";
                return Err(wrong(property, message));
            }
        };
        draft.origin("access.distribution", Some(&property));
    }
    let numbers: [(&str, &str, Set<f64>); 4] = [
        ("hotspotdatafraction", "access.hotspot_data_share", |own, share| own.access.hotspot_data_share = share),
        ("hotspotopnfraction", "access.hotspot_access_share", |own, share| own.access.hotspot_access_share = share),
        ("exponential.percentile", "access.exponential_percentile", |own, percent| {
            own.access.exponential_percentile = percent;
        }),
        ("exponential.frac", "access.exponential_data_share", |own, share| own.access.exponential_data_share = share),
    ];
    for (key, to, set) in numbers {
        number(table, draft, key, to, set)?;
    }
    Ok(())
}

fn scans(table: &mut Table, draft: &mut Draft) -> Result<(), PropertiesError> {
    number(table, draft, "minscanlength", "access.scan_length_min", |own, least| own.access.scan_length_min = least)?;
    number(table, draft, "maxscanlength", "access.scan_length_max", |own, most| own.access.scan_length_max = most)?;
    if let Some(distribution) = length(table, "scanlengthdistribution", false)? {
        draft.spec.own.access.scan_length = distribution;
    }
    Ok(())
}

/// The mix: YCSB's shares, and those that another benchmark with its keys has besides, as key and kind.
pub(super) fn mix(table: &mut Table, draft: &mut Draft, more: &[(&str, &str)]) -> Result<(), PropertiesError> {
    // The default shares are YCSB's.
    const SHARES: [(&str, &str, f64); 5] = [
        ("readproportion", "read", 0.95),
        ("updateproportion", "update", 0.05),
        ("insertproportion", "insert", 0.0),
        ("scanproportion", "scan", 0.0),
        ("readmodifywriteproportion", "read_modify_write", 0.0),
    ];
    let mut shares = Vec::with_capacity(SHARES.len());
    let more = more.iter().map(|(key, kind)| (*key, *kind, 0.0));
    for (key, kind, default) in SHARES.into_iter().chain(more) {
        let share = table.share(key, default)?;
        if share.property.is_none() && default > 0.0 {
            draft.notes.push(format!("{key} is missing: using YCSB's default, {default}"));
        }
        draft.add_share(kind, &share);
        shares.push(share);
    }
    check_sum(&draft.origins.files, &shares)?;
    note_draws(shares[2].value, draft);
    Ok(())
}

/// Notes what inserts mean for the draws.
fn note_draws(inserts: f64, draft: &mut Draft) {
    let access = &draft.spec.own.access;
    let note = match access.distribution {
        Distribution::Zipfian if inserts > 0.0 => {
            "requestdistribution=zipfian with inserts: access.key_space becomes the records, twice the inserts that the \
             sessions are expected to do, and one, as in YCSB; --sessions changes it"
                .to_string()
        }
        Distribution::Latest | Distribution::Exponential if inserts > 0.0 => {
            let window = access.dependency_window;
            let newest = (inserts * window as f64).ceil();
            format!(
                "inserted records can be drawn {window} sessions after their insert, so that reads hardly ever wait for \
                 it: the newest {newest} or so are not read, while YCSB reads them once their insert is done; change it \
                 with --set access.dependency_window=N, where N is at least the number of threads"
            )
        }
        _ => return,
    };
    draft.notes.push(note);
}

/// The names of table, fields and keys are fixed.
fn names(table: &mut Table, draft: &mut Draft) -> Result<(), PropertiesError> {
    for (key, fixed, names) in [
        ("table", "usertable", "the table is always usertable"),
        ("fieldnameprefix", "field", "the fields are always field0, field1 and so on"),
        ("keyprefix", "user", "keys always begin with user"),
    ] {
        match table.get(key) {
            Some(property) if property.value != fixed => {
                draft.notes.push(format!("{property}: has no effect; {names}"));
            }
            _ => {}
        }
    }
    Ok(())
}
