//! YCSB's core workload, by analogy: its table of records has no friends, so each
//! record becomes a member, and each analogy is noted for people to read.

use schemas::session::{Role, Step};
use schemas::social::Action;
use schemas::spec::{Composed, Distribution};

use super::table::Table;
use super::{Converted, PropertiesError, Share, check_sum};

/// The session that stands for a read-modify-write.
const READ_MODIFY_WRITE: &str = "read_modify_write";

/// Keys of a run, and who decides that here.
const RUN: [(&str, &str); 5] = [
    ("threadcount", "`coord rate --first-threads`, or `coord run --threads`"),
    ("maxexecutiontime", "the time in `coord rate --sla \"95% < 100ms, 0.1% unpredictable, 60s\"`"),
    ("target", "the plan of an experiment, see `coord rate --help`"),
    ("db", "`coord rate --store URL`"),
    ("exportfile", "`coord rate --runs DIR`"),
];

/// Keys about YCSB's own machinery, its keys and its fields.
const WITHOUT_MEANING: [&str; 31] = [
    "workload",
    "readallfields",
    "insertorder",
    "insertstart",
    "insertcount",
    "zeropadding",
    "table",
    "fieldnameprefix",
    "keyprefix",
    "minfieldlength",
    "fieldlengthhistogram",
    "minscanlength",
    "scanlengthdistribution",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "dataintegrity",
    "dotransactions",
    "core_workload_insertion_retry_limit",
    "core_workload_insertion_retry_interval",
    "exporter",
    "measurementtype",
    "measurement.",
    "reportlatencyforeacherror",
    "latencytrackederrors",
    "histogram.",
    "hdrhistogram.",
    "timeseries.",
    "status.",
    "status",
    "label",
    "syncintervalops",
];

/// Takes over what the table says.
pub(super) fn convert(table: &mut Table, converted: &mut Converted) -> Result<(), PropertiesError> {
    records(table, converted)?;
    access(table, converted)?;
    operations(table, converted)?;
    converted.set_sessions(table.number("operationcount")?);
    converted.note_keys(table, &RUN);
    table.ignore(&WITHOUT_MEANING);
    Ok(())
}

fn records(table: &mut Table, converted: &mut Converted) -> Result<(), PropertiesError> {
    if let Some((members, place)) = table.number("recordcount")? {
        converted.unchecked.data.members = members;
        converted.origin("data.members", Some(&place));
    }
    // YCSB's defaults.
    let fields = table.number::<u32>("fieldcount")?;
    let length = table.number::<u32>("fieldlength")?;
    let (count, bytes) = (fields.as_ref().map_or(10, |(n, _)| *n), length.as_ref().map_or(100, |(n, _)| *n));
    let Some(record_bytes) = count.checked_mul(bytes) else {
        let place = length.or(fields).unwrap_or_else(|| unreachable!("the defaults are small")).1;
        return Err(PropertiesError::Value { place, message: "the record is too large".into() });
    };
    converted.unchecked.data.attribute_bytes = record_bytes;
    let writes_all = table.switch("writeallfields")?.is_some_and(|(all, _)| all);
    converted.unchecked.data.comment_bytes = if writes_all { record_bytes } else { bytes };
    converted.notes.push(format!(
        "by analogy, each record is a member with attributes of {count} x {bytes} = {record_bytes} bytes (recordcount, \
         fieldcount, fieldlength)"
    ));
    match table.get("fieldlengthdistribution") {
        Some(place) if place.value != "constant" => {
            converted.notes.push(format!("{place}: lengths are constant here, all are {bytes}"));
        }
        _ => {}
    }
    Ok(())
}

fn access(table: &mut Table, converted: &mut Converted) -> Result<(), PropertiesError> {
    let access = &mut converted.unchecked.access;
    let Some(place) = table.get("requestdistribution") else {
        // YCSB's default.
        access.distribution = Distribution::Uniform;
        return Ok(());
    };
    match place.value.as_str() {
        "uniform" => access.distribution = Distribution::Uniform,
        "zipfian" => {
            access.distribution = Distribution::Zipfian;
            access.theta = 0.01;
            converted.notes.push(format!("{place}: theta = 0.01, the exponent of YCSB being 0.99 = 1 - theta"));
        }
        _ => {
            let message = "there is no such distribution here; take zipfian or uniform".into();
            return Err(PropertiesError::Value { place, message });
        }
    }
    Ok(())
}

fn operations(table: &mut Table, converted: &mut Converted) -> Result<(), PropertiesError> {
    // YCSB's defaults.
    let [read, update, insert, scan, modify] = [
        ("readproportion", 0.95),
        ("updateproportion", 0.05),
        ("insertproportion", 0.0),
        ("scanproportion", 0.0),
        ("readmodifywriteproportion", 0.0),
    ]
    .map(|(key, default)| {
        let share = table.share(key, default)?;
        if share.place.is_none() && default > 0.0 {
            converted.notes.push(format!("no {key}: it is {default}, as in YCSB"));
        }
        Ok::<Share, PropertiesError>(share)
    });
    let shares = [read?, update?, insert?, scan?, modify?];
    check_sum(&converted.files, &shares)?;
    let [read, update, insert, scan, modify] = &shares;
    converted.add_share("view_profile", read);
    converted.add_share("post_comment", update);
    converted.add_share("post_comment", insert);
    converted.add_share("list_friends", scan);
    converted.add_share(READ_MODIFY_WRITE, modify);
    let mut analogy = |share: &Share, text: &str| {
        if share.value > 0.0 {
            converted.notes.push(format!("by analogy, {text}"));
        }
    };
    analogy(read, "a read is view_profile of a member");
    analogy(update, "an update is post_comment on a member's one resource");
    analogy(insert, "an insert is post_comment on a member's one resource; members do not become more");
    analogy(modify, "a read-modify-write is the session of view_comments and post_comment on her own resource");
    let length = table.number::<u64>("maxscanlength")?;
    if scan.value > 0.0 {
        set_friends(converted, scan, length);
    }
    if update.value + insert.value + modify.value > 0.0 {
        converted.unchecked.data.resources_per_member = 1;
    }
    if modify.value > 0.0 {
        let step = |action| Step { action, role: Role::OwnResource };
        let steps = vec![step(Action::ViewComments), step(Action::PostComment)];
        converted.unchecked.session.insert(READ_MODIFY_WRITE.into(), Composed { steps });
    }
    Ok(())
}

/// As many friends as a scan reads records at most.
fn set_friends(converted: &mut Converted, scan: &Share, length: Option<(u64, super::Place)>) {
    // YCSB's default. In a ring the number of friends is even.
    let (records, place) = length.map_or((1_000, None), |(records, place)| (records, Some(place)));
    let friends = records.saturating_add(records % 2);
    converted.unchecked.data.friends_per_member = friends;
    converted.origin("data.friends_per_member", place.as_ref().or(scan.place.as_ref()));
    converted.notes.push(format!(
        "by analogy, a scan is list_friends of a member, and each has {friends} friends (maxscanlength, made even); a \
         scan always reads them all"
    ));
}
