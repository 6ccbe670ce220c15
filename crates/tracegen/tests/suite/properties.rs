//! Property files of BG and YCSB: the resulting specifications, and the refused files.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::social;
use schemas::manifest::Manifest;
use schemas::social::Action;
use schemas::spec::Spec;
use schemas::workload::kv::{Access, Distribution as KvDistribution, KeyOrder, KvWorkload, LengthDistribution};
use schemas::workload::social::Distribution;
use tracegen::properties::{Source, convert};

/// BG's file for the data.
const DATA: &str = "usercount=10000\nuseroffset=0\nresourcecountperuser=0\nfriendcountperuser=10\nconfperc=1\n\
                    userworkload=edu.usc.bg.workloads.UserWorkload\nrequestdistribution=dzipfian\nzipfianmean=0.27\n";

/// BG's file for a mix with few writes.
const FEW_UPDATES: &str = "operationcount=0\nworkload=edu.usc.bg.workloads.CoreWorkload\nViewSelfProfileSession=0\n\
                           ViewProfileAction=0.4\nListFriendsAction=0.05\nViewFriendReqAction=0.05\n\
                           InviteFriendAction=0.004\nAcceptFriendReqAction=0.002\nRejectFriendReqAction=0.002\n\
                           ThawFriendshipAction=0.002\nViewTopKResourcesAction=0.4\n\
                           ViewCommentsOnResourceAction=0.09\nViewNewsFeedAction=0\nrequestdistribution=dzipfian\n\
                           zipfianmean=0.27\n";

/// YCSB's files with many reads, and with scans.
const MANY_READS: &str = "recordcount=1000\noperationcount=1000\nworkload=com.yahoo.ycsb.workloads.CoreWorkload\n\
                          readallfields=true\nreadproportion=0.95\nupdateproportion=0.05\nscanproportion=0\n\
                          insertproportion=0\nrequestdistribution=zipfian\n";
const SCANS: &str = "recordcount=1000\noperationcount=1000\nworkload=site.ycsb.workloads.CoreWorkload\n\
                     readproportion=0\nupdateproportion=0\nscanproportion=0.95\ninsertproportion=0.05\n\
                     requestdistribution=zipfian\nmaxscanlength=99\nscanlengthdistribution=uniform\n";

/// A specification with its notes and unknown keys, or the error.
fn converted(files: &[&str], settings: &[&str]) -> Result<(Spec, String, Vec<String>), String> {
    let names = ["one", "two"];
    let sources: Vec<Source> =
        names.iter().zip(files).map(|(name, text)| Source { file: name.to_string(), bytes: (*text).into() }).collect();
    let settings: Vec<String> = settings.iter().map(|s| s.to_string()).collect();
    let converted = convert(&sources).map_err(|e| e.to_string())?;
    let spec = converted.spec(&settings).map_err(|e| e.to_string())?;
    let unknown = converted.unknown.iter().map(|property| property.to_string()).collect();
    Ok((spec, converted.notes.join("\n"), unknown))
}

fn check_refused(files: &[&str], expect: &str) {
    let error = converted(files, &[]).unwrap_err();
    assert!(error.contains(expect), "{error:?} lacks {expect:?}");
}

#[test]
fn bg_data_and_mix_are_one_specification() {
    let (spec, notes, unknown) = converted(&[DATA, FEW_UPDATES], &["data.resources_per_member=10"]).unwrap();
    assert_eq!((spec.name.as_str(), spec.sessions, spec.fragments), ("two", 1_000_000, 1));
    assert!(
        notes.starts_with("operationcount sets no limit: generating 1000000 sessions") && notes.lines().count() == 1,
        "{notes}"
    );
    assert_eq!(unknown, Vec::<String>::new());
    let data = &social(&spec).data;
    assert_eq!((data.members, data.friends_per_member, data.confirmed_share), (10_000, 10, 1.0));
    assert_eq!((data.resources_per_member, data.image_bytes, data.thumbnail_bytes), (10, 0, 0));
    assert_eq!((social(&spec).access.distribution, social(&spec).access.theta), (Distribution::Zipfian, 0.27));
    assert_eq!(spec.mix.len(), 9);
    assert_eq!((spec.mix["view_profile"], spec.mix["view_comments"]), (0.4, 0.09));
    let (again, ..) = converted(&[FEW_UPDATES, DATA], &["data.resources_per_member=10"]).unwrap();
    assert_eq!(again, Spec { name: "one".into(), ..spec });
}

#[test]
fn bg_keys_beyond_the_samples_are_known() {
    let text = "usercount=500\nfriendcountperuser=10\nconfperc=0.8\nresourcecountperuser=2\nnumclients=4\n\
                insertimage=true\nimagesize=12\nthinktime=3\ninterarrivaltime=20\nthreadcount=10\ndb=mysql.Client\n\
                db.passwd=secret\nviewsomething=1\nrequestdistribution=uniform\nzipfianmean=0.5\n\
                operationcount=700\nInviteFrdSession=0.25\nViewFrdProfileSession=0.75\n";
    let (spec, notes, unknown) = converted(&[text], &[]).unwrap();
    assert_eq!((social(&spec).data.image_bytes, social(&spec).data.thumbnail_bytes), (12_288, 2_048));
    assert_eq!((spec.think_time.mean_us, spec.inter_arrival_time.mean_us), (3_000, 20_000));
    assert_eq!((spec.sessions, spec.fragments, social(&spec).data.confirmed_share), (700, 4, 0.8));
    assert_eq!((spec.mix["invite_friend_session"], spec.mix["view_friend_profile_session"]), (0.25, 0.75));
    assert_eq!((social(&spec).access.distribution, social(&spec).access.theta), (Distribution::Uniform, 0.27));
    assert_eq!(unknown, ["one:13: viewsomething=1"]);
    for part in
        ["threadcount=10: not part of a trace", "--first-threads", "--store URL", "zipfianmean=0.5: has no effect"]
    {
        assert!(notes.contains(part), "{notes} lacks {part:?}");
    }
    assert!(!notes.contains("secret"), "{notes}");
}

fn kv(spec: &Spec) -> KvWorkload {
    spec.workload().unwrap()
}

#[test]
fn ycsb_is_a_workload_of_its_own_family() {
    let (spec, notes, unknown) = converted(&[MANY_READS], &[]).unwrap();
    let KvWorkload { data, access, .. } = kv(&spec);
    assert_eq!((spec.family.as_str(), data.records, spec.sessions, data.fields), ("kv", 1_000, 1_000, 10));
    assert_eq!((data.field_bytes, data.key_order, data.key_digits), (100, KeyOrder::Hashed, 1));
    assert_eq!((access.distribution, access.key_space, access.read_all_fields), (KvDistribution::Zipfian, 1_001, true));
    assert_eq!(spec.kinds(), [("read", 0.95), ("update", 0.05)]);
    assert_eq!((notes.as_str(), unknown), ("", Vec::new()));

    let (spec, notes, _) = converted(&[SCANS], &[]).unwrap();
    let access = kv(&spec).access;
    assert_eq!(spec.kinds(), [("insert", 0.05), ("scan", 0.95)]);
    assert_eq!((access.scan_length, access.scan_length_max), (LengthDistribution::Uniform, 99));
    assert!(notes.contains("access.key_space becomes the records, twice the inserts"), "{notes}");
    // Settings come after the conversion, and the key space follows them.
    assert_eq!(access.key_space, 1_101);
    let key_space = |settings: &[&str]| kv(&converted(&[SCANS], settings).unwrap().0).access.key_space;
    assert_eq!(key_space(&["sessions=100000"]), 11_001);
    assert_eq!(key_space(&["data.records=50", "mix.insert=0.95", "mix.scan=0.05"]), 1_951);
    assert_eq!(key_space(&["access.key_space=5000", "sessions=100000"]), 5_000);
}

/// Every property of YCSB is known; its defaults are YCSB's.
#[test]
fn all_properties_of_ycsb_are_known() {
    let text = "recordcount=500\ninsertstart=100\noperationcount=900\nfieldcount=4\nfieldlength=80\nminfieldlength=20\n\
                fieldlengthdistribution=zipfian\nfieldlengthhistogram=hist.txt\nfieldnameprefix=f\ntable=mine\n\
                readallfields=false\nreadallfieldsbyname=true\nwriteallfields=true\ndataintegrity=false\n\
                readproportion=0.2\nupdateproportion=0.2\ninsertproportion=0\nscanproportion=0.2\n\
                readmodifywriteproportion=0.4\nrequestdistribution=hotspot\nhotspotdatafraction=0.1\n\
                hotspotopnfraction=0.7\nexponential.percentile=90\nexponential.frac=0.5\nminscanlength=2\n\
                maxscanlength=20\nscanlengthdistribution=zipfian\ninsertorder=ordered\nzeropadding=8\n\
                core_workload_insertion_retry_limit=3\ncore_workload_insertion_retry_interval=1\n\
                core_workload_insertion_keep_going_on_error=true\nthreadcount=8\ntarget=1000\nmaxexecutiontime=60\n\
                db=site.ycsb.BasicDB\ndotransactions=true\nstatus=on\nstatus.interval=10\nlabel=x\nexporter=a.B\n\
                exportfile=out\nmeasurementtype=hdrhistogram\nmeasurement.interval=both\nmeasurement.trackjvm=true\n\
                hdrhistogram.percentiles=50\nhdrhistogram.fileoutput=true\nhdrhistogram.output.path=p\n\
                measurement.histogram.verbose=true\nhistogram.buckets=9\ntimeseries.granularity=1\n\
                measurement.raw.output_file=r\nmeasurement.raw.no_summary=true\nreportlatencyforeacherror=true\n\
                latencytrackederrors=a\nworkload=site.ycsb.workloads.CoreWorkload\nunknown=1\n";
    let (spec, notes, unknown) = converted(&[text], &[]).unwrap();
    assert_eq!(unknown, ["one:57: unknown=1"]);
    let KvWorkload { data, access, .. } = kv(&spec);
    assert_eq!((data.records, data.first_record, data.fields, data.field_bytes), (400, 100, 4, 80));
    assert_eq!((data.field_bytes_min, data.field_length), (20, LengthDistribution::Zipfian));
    assert_eq!((data.key_order, data.key_digits), (KeyOrder::Ordered, 8));
    assert_eq!((access.read_all_fields, access.write_all_fields), (false, true));
    assert_eq!((access.hotspot_data_share, access.hotspot_access_share), (0.1, 0.7));
    assert_eq!((access.exponential_percentile, access.exponential_data_share), (90.0, 0.5));
    assert_eq!((access.scan_length_min, access.scan_length_max), (2, 20));
    assert_eq!(spec.mix["read_modify_write"], 0.4);
    for part in [
        "threadcount=8: not part of a trace; use `encore run --threads N`",
        "measurementtype=hdrhistogram: not part of a trace",
        "one:10: table=mine: has no effect; the table is always usertable",
        "dataintegrity=false: has no effect; every value says which write it comes from",
    ] {
        assert!(notes.contains(part), "{notes} lacks {part:?}");
    }
    let defaults = kv(&converted(&["recordcount=50\nreadproportion=0.95\n"], &[]).unwrap().0);
    assert_eq!((defaults.access, defaults.data.fields), (Access::default(), 10));
    assert_eq!(defaults.data.field_bytes_min, 1);
}

/// Some properties were dropped without a word.
#[test]
fn every_property_of_ycsb_changes_the_workload_or_gives_a_note() {
    let base = "recordcount=500\nreadproportion=0.95\nupdateproportion=0.05\noperationcount=900\n";
    let (plain, plain_notes, _) = converted(&[base], &[]).unwrap();
    assert_eq!(plain_notes, "");
    for property in [
        "table=mine",
        "fieldcount=4",
        "fieldlength=80",
        "minfieldlength=20",
        "fieldlengthdistribution=zipfian",
        "fieldlengthhistogram=other.txt",
        "fieldnameprefix=f",
        "readallfields=false",
        "readallfieldsbyname=true",
        "writeallfields=true",
        "dataintegrity=true",
        "requestdistribution=latest",
        "hotspotdatafraction=0.1",
        "hotspotopnfraction=0.7",
        "exponential.percentile=90",
        "exponential.frac=0.5",
        "minscanlength=2",
        "maxscanlength=20",
        "scanlengthdistribution=zipfian",
        "insertorder=ordered",
        "zeropadding=8",
        "insertstart=100",
        "insertcount=100",
        "core_workload_insertion_retry_limit=3",
        "core_workload_insertion_retry_interval=1",
        "core_workload_insertion_keep_going_on_error=true",
        "threadcount=8",
        "target=1000",
        "maxexecutiontime=60",
        "db=site.ycsb.JdbcDB",
        "dotransactions=false",
        "status=on",
        "status.interval=1",
        "label=x",
        "exporter=a.B",
        "exportfile=out",
        "measurementtype=raw",
        "measurement.interval=both",
        "measurement.trackjvm=true",
        "hdrhistogram.percentiles=50",
        "hdrhistogram.fileoutput=true",
        "hdrhistogram.output.path=p",
        "measurement.histogram.verbose=true",
        "histogram.buckets=9",
        "timeseries.granularity=1",
        "measurement.raw.output_file=r",
        "measurement.raw.no_summary=true",
        "reportlatencyforeacherror=true",
        "latencytrackederrors=a",
    ] {
        let (spec, notes, unknown) = converted(&[&format!("{base}{property}\n")], &[]).unwrap();
        assert_eq!(unknown, Vec::<String>::new());
        assert!(spec != plain || notes.contains(property), "{property} does nothing: {notes:?}");
        assert!(!notes.contains("use nothing"), "{notes}");
    }
    let latest = "recordcount=500\nreadproportion=0.95\nupdateproportion=0\ninsertproportion=0.05\n\
                  requestdistribution=latest\n";
    let notes = converted(&[latest], &[]).unwrap().1;
    assert!(
        notes.contains("the newest 26 or so are not read") && notes.contains("access.dependency_window"),
        "{notes}"
    );
    let notes = converted(&["recordcount=500\nreadproportion=0.95\ninsertcount=100\n"], &[]).unwrap().1;
    assert!(notes.contains("from number 100 on, while YCSB inserts from recordcount on"), "{notes}");
}

#[test]
fn contradictions_name_both_lines() {
    check_refused(
        &[DATA, FEW_UPDATES],
        "two:12: ViewCommentsOnResourceAction=0.09 contradicts one:3: resourcecountperuser=0; the data set has no \
         resources; change one of them, or use e.g. --set data.resources_per_member=10",
    );
    check_refused(
        &[DATA, "zipfianmean=0.5\nViewProfileAction=1\n"],
        "two:1: zipfianmean=0.5 contradicts one:8: zipfianmean=0.27; remove one of them",
    );
    check_refused(&["a=1\na=2\n"], "one:2: a=2 contradicts one:1: a=1; remove one of them");
    // Messages must not show passwords.
    check_refused(
        &["db.passwd=first\ndb.passwd=other\n"],
        "one:2: db.passwd=(hidden) contradicts one:1: db.passwd=(hid",
    );
    check_refused(
        &["usercount=10\n", "recordcount=20\n"],
        "two:1: recordcount=20 contradicts one:1: usercount=10; one key is BG's and the other YCSB's",
    );
    check_refused(
        &["usercount=10\ninsertimage=true\nimagesize=0\n"],
        "one:2: insertimage=true contradicts one:3: imagesize=0; set imagesize to a size in KB",
    );
}

#[test]
fn wrong_values_name_their_line() {
    let bg = |more: &str, expect: &str| check_refused(&["usercount=100\n", &format!("\n{more}\n")], expect);
    bg("ViewProfileAction=0.5\nListFriendsAction=0.4", "one and two: the proportions add up to 0.9, not to 1: two:2: ");
    bg("ViewProfileAction=2", "two:2: ViewProfileAction=2: is not between 0 and 1");
    bg("ViewProfileAction=many", "two:2: ViewProfileAction=many: is not a number");
    bg("ViewNewsFeedAction=1", "two:2: ViewNewsFeedAction=1: Encore does not have this action");
    bg("ListCommonFriendsAction=0.1", "two:2: ListCommonFriendsAction=0.1: Encore does not have this action");
    bg("useroffset=5", "two:2: useroffset=5: not supported: ids start at 0");
    bg("requestdistribution=latest", "two:2: requestdistribution=latest: unsupported distribution");
    bg("friendcountperuser=-1", "two:2: friendcountperuser=-1: is not a whole number");
    bg("friendcountperuser=3\nViewProfileAction=1", "two:2: friendcountperuser=3: data.friends_per_member: 3 is odd");
    bg(
        "zipfianmean=3\nrequestdistribution=zipfian\nViewProfileAction=1",
        "two:2: zipfianmean=3: access.theta: 3 is not",
    );
    bg("insertimage=maybe", "two:2: insertimage=maybe: is neither true nor false");
    bg("insertimage=true\nimagesize=5000000", "two:3: imagesize=5000000: is too large");
    bg("thinktime=5000000", "two:2: thinktime=5000000: is too large");
    bg("workload=org.example.Mine", "two:2: workload=org.example.Mine: unknown workload class");
    bg("ViewCommentsOnResourceAction=1", "two:2: ViewCommentsOnResourceAction=1: needs resources, and no file");
    bg("operationcount=99999999999999999999", "two:2: operationcount=99999999999999999999: is not a whole number");
    bg("", "one and two: the mix is empty; add the file with the mix");
    check_refused(&["ViewProfileAction=1\n"], "one: the number of members is missing");
    check_refused(&["colour=blue\n"], "one: no key of BG or YCSB found");
    let ycsb = |more: &str, expect: &str| check_refused(&["recordcount=100\n", more], expect);
    ycsb("requestdistribution=zipf", "two:1: requestdistribution=zipf: unsupported distribution; use uniform, zipfian");
    ycsb("readproportion=0.5", "the proportions add up to 0.55, not to 1");
    ycsb("insertstart=100", "two:1: insertstart=100 contradicts one:1: recordcount=100; recordcount is the number of");
    ycsb("insertstart=10\ninsertcount=91", "two:2: insertcount=91 contradicts one:1: recordcount=100");
    ycsb("fieldcount=64", "two:1: fieldcount=64: data.fields: 64 is not between 1 and 63");
    ycsb("fieldlengthdistribution=histogram", "two:1: fieldlengthdistribution=histogram: unsupported distribution");
    ycsb("minscanlength=5\nmaxscanlength=4", "two:1: minscanlength=5: access.scan_length_min: 5 is not between 1 and");
    ycsb(
        "dataintegrity=true\nfieldlengthdistribution=uniform",
        "two:1: dataintegrity=true contradicts two:2: fieldlengthdistribution=uniform; YCSB checks values of constant",
    );
    ycsb(
        "exponential.percentile=100",
        "exponential.percentile=100: access.exponential_percentile: 100 is not more than 0",
    );
    check_refused(&["readproportion=1\nupdateproportion=0\n"], "one: the number of records is missing");
}

#[test]
fn settings_come_after_the_files() {
    let (spec, ..) = converted(&["ViewProfileAction=1\n"], &["data.members=30", "sessions=5"]).unwrap();
    assert_eq!((social(&spec).data.members, spec.sessions), (30, 5));
    let (spec, ..) = converted(&[DATA], &["mix.view_profile=1"]).unwrap();
    assert_eq!(social(&spec).data.friends_per_member, 10);
    let error = converted(&[DATA], &["data.membres=1"]).unwrap_err();
    assert!(error.contains("membres"), "{error}");
}

/// Exit code, standard output and standard error of `tracegen gen` in `dir`.
fn gen_in(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let fixture = |arg: &&str| match arg.strip_prefix('@') {
        Some(name) => fixtures.join(name).display().to_string(),
        None => arg.to_string(),
    };
    let output = Command::new(env!("CARGO_BIN_EXE_tracegen"))
        .arg("gen")
        .args(args.iter().map(fixture))
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().replace(fixtures.to_str().unwrap(), "FIXTURES");
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_command_line_reads_property_files() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let bg = ["--properties", "@members-2000", "--properties", "@many-updates"];
    let (code, out, err) = gen_in(dir, &bg);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.starts_with("error: FIXTURES/many-updates:13: ViewCommentsOnResourceAction=0.1 contradicts"), "{err}");

    let healed =
        [&bg[..], &["--set", "data.resources_per_member=3", "--sessions", "2000", "--fragments", "2"]].concat();
    let (code, out, err) = gen_in(dir, &[&healed[..], &["--print-spec"]].concat());
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!("properties_notes", err);
    let spec = Spec::parse(&out, "printed.toml").unwrap();
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "something was generated");
    let (code, _, err) = gen_in(dir, &healed);
    assert_eq!(code, 0, "{err}");
    assert_eq!(Manifest::read(&dir.join("many-updates.trace")).unwrap().spec, spec);

    let (code, out, err) = gen_in(dir, &["--properties", "@half-updates.properties", "-o", "half", "--json"]);
    assert_eq!(code, 0, "{err}");
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&object["folder"], &object["sessions"]), (&"half".into(), &1_000.into()));
    assert_eq!(err, "");
    assert_eq!(Manifest::read(&dir.join("half")).unwrap().spec.family, "kv");

    let writes = ["--properties", "@members-2000", "--properties", "@writes-alone", "--sessions", "20000"];
    let (code, _, err) = gen_in(dir, &writes);
    assert_eq!(code, 0, "{err}");
    let manifest = Manifest::read(&dir.join("writes-alone.trace")).unwrap();
    assert_eq!(manifest.sessions(), 20_000);
    assert!(
        manifest.operations_by_name.iter().all(|(name, n)| Action::from_name(name).unwrap().is_write() || *n == 0),
        "{manifest:?}"
    );

    for wrong in [&["--properties", "@none"][..], &["a.toml", "--properties", "@members-2000"], &[]] {
        let (code, out, err) = gen_in(dir, wrong);
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.starts_with("error: "), "{err}");
    }
}

/// The file of ycsb-t-2014, Listing 2.
const CLOSED_ECONOMY: &str = "recordcount=10000\noperationcount=1000000\n\
    workload=com.yahoo.ycsb.workloads.ClosedEconomyWorkload\ntotalcash=10000000\nreadproportion=0.9\n\
    readmodifywriteproportion=0.1\nrequestdistribution=zipfian\nfieldcount=1\nfieldlength=100\n\
    writeallfields=true\nreadallfields=true\nhistogram.buckets=0\nupdateproportion=0\n";

#[test]
fn ycsb_t_is_the_family_of_the_closed_economy() {
    let (spec, notes, unknown) = converted(&[CLOSED_ECONOMY], &[]).unwrap();
    let KvWorkload { data, access, .. } = KvWorkload::of(&spec).unwrap();
    assert_eq!((spec.family.as_str(), data.records, data.total_cash), ("economy", 10_000, Some(10_000_000)));
    assert_eq!((data.fields, data.field_bytes, spec.sessions), (1, 100, 1_000_000));
    assert_eq!(
        (access.distribution, access.read_all_fields, access.write_all_fields),
        (KvDistribution::Zipfian, true, true)
    );
    assert_eq!((spec.mix["read"], spec.mix["read_modify_write"], spec.mix.len()), (0.9, 0.1, 2));
    assert!(unknown.is_empty(), "{unknown:?}");
    for part in
        ["a transfer of $1 goes from the record that is drawn first", "histogram.buckets=0: not part of a trace"]
    {
        assert!(notes.contains(part), "{notes} lacks {part:?}");
    }
    assert!(!notes.contains("multiple of recordcount") && !notes.contains("random bytes"), "{notes}");
}

#[test]
fn what_the_code_of_ycsb_t_does_in_another_way_is_noted() {
    let text = "recordcount=3\nworkload=com.yahoo.ycsb.workloads.ClosedEconomyWorkload\ntotal_cash=10\nreadproportion=0.5\n\
                updateproportion=0.2\ninsertproportion=0.2\ndeleteproportion=0.1\noperationcount=9\n";
    let (spec, notes, _) = converted(&[text], &[]).unwrap();
    assert_eq!((KvWorkload::of(&spec).unwrap().data.total_cash, spec.mix["delete"]), (Some(10), 0.1));
    for part in ["the first 1 records have $1 more", "update: an update reads", "insert: an insert takes money"] {
        assert!(notes.contains(part), "{notes} lacks {part:?}");
    }
    let (spec, notes, _) = converted(&[&text.replace("total_cash=10\n", "")], &[]).unwrap();
    assert_eq!(KvWorkload::of(&spec).unwrap().data.total_cash, Some(1_000_000));
    assert!(notes.contains("totalcash is missing: using the default of YCSB+T's code, 1000000"), "{notes}");
    let twice = converted(&[&format!("{text}totalcash=11\n")], &[]).unwrap_err();
    assert!(twice.contains("total_cash=10 contradicts one:") && twice.contains("totalcash=11"), "{twice}");
    let short = converted(&[&format!("{text}fieldlength=20\n")], &[]).unwrap_err();
    assert!(short.contains("fieldlength=20: data.field_bytes: 20 is less than 36"), "{short}");
}
