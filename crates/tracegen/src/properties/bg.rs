//! Maps BG's keys (bg-2013; the names are those of its implementation) to a specification.

use std::collections::BTreeMap;

use schemas::spec::{Delay, Spec, SpecOf};
use schemas::workload::social::{Access, Assignment, Data, Distribution, SocialWorkload};

use super::table::Table;
use super::{Converted, Origins, PropertiesError, check_sum};

/// BG's sessions and actions, and their names in a specification.
const KINDS: [(&str, &str); 19] = [
    ("ViewSelfProfileSession", "view_self_profile_session"),
    ("ViewFrdProfileSession", "view_friend_profile_session"),
    ("PostCmtOnResSession", "post_comment_session"),
    ("DeleteCmtOnResSession", "delete_comment_session"),
    ("InviteFrdSession", "invite_friend_session"),
    ("AcceptFrdReqSession", "accept_friend_request_session"),
    ("RejectFrdReqSession", "reject_friend_request_session"),
    ("ThawFrdshipSession", "thaw_friendship_session"),
    ("ViewProfileAction", "view_profile"),
    ("ListFriendsAction", "list_friends"),
    ("ViewFriendReqAction", "view_friend_requests"),
    ("InviteFriendAction", "invite_friend"),
    ("AcceptFriendReqAction", "accept_friend_request"),
    ("RejectFriendReqAction", "reject_friend_request"),
    ("ThawFriendshipAction", "thaw_friendship"),
    ("ViewTopKResourcesAction", "view_top_k_resources"),
    ("ViewCommentsOnResourceAction", "view_comments"),
    ("PostCommentOnResourceAction", "post_comment"),
    ("DeleteCommentOnResourceAction", "delete_comment"),
];

/// BG's actions and sessions that Encore does not have.
const ABSENT: [&str; 6] = [
    "ViewNewsFeedAction",
    "GetShortestDistanceAction",
    "ListCommonFriendsAction",
    "ListFriendsOfFriendsAction",
    "unFriendAcceptProportion",
    "unFriendRejectProportion",
];

/// Keys of a rating, and the flag that sets the same in Encore.
const RATING: [(&str, &str); 9] = [
    ("threadcount", "use `encore rate --first-threads`, or `encore run --threads`"),
    ("maxexecutiontime", "use the time in `encore rate --sla \"95% < 100ms, 0.1% unpredictable, 60s\"`"),
    ("expectedlatency", "use the response time in `encore rate --sla \"95% < 100ms, 0.1% unpredictable, 60s\"`"),
    ("db", "use `encore rate --store URL`"),
    ("exportfile", "use `encore rate --runs DIR`"),
    ("warmup", "use `encore rate --warmup`"),
    ("warmupthreads", "the warm-up has as many threads as its experiment"),
    ("monitor", "use `encore rate --monitor SECONDS`"),
    ("target", "use `encore run --target N`, in sessions a second over all threads"),
];

/// Keys about BG's own internals.
const WITHOUT_MEANING: [&str; 22] = [
    "workload",
    "userworkload",
    "friendshipworkload",
    "resourceworkload",
    "ratingmode",
    "machineid",
    "numloadthreads",
    "initapproach",
    "initialmembercount",
    "initialfriendsperuser",
    "initialpendingsperuser",
    "initialresourcesperuser",
    "loadmode",
    "dbtype",
    "port",
    "logdir",
    "enablelogging",
    "benchmarkingmode",
    "numsockets",
    "clients",
    "db.",
    "mongodb.",
];

/// The size of BG's thumbnails in bytes (bg-2013, section C).
const THUMBNAIL_BYTES: u32 = 2_048;

type Draft = super::Draft<SocialWorkload>;

/// Converts the entries of the table.
pub(super) fn convert(table: &mut Table) -> Result<Converted, PropertiesError> {
    let mut draft = Draft::new(without_values(), table);
    let converted = &mut draft;
    data(table, converted)?;
    images(table, converted)?;
    mix(table, converted)?;
    access(table, converted)?;
    converted.spec.common.think_time = delay(table, converted, "thinktime", "think_time.mean_us")?;
    converted.spec.common.inter_arrival_time =
        delay(table, converted, "interarrivaltime", "inter_arrival_time.mean_us")?;
    converted.set_sessions(table.number("operationcount")?);
    converted.note_keys(table, &RATING);
    table.ignore(&WITHOUT_MEANING);
    Ok(draft.converted(check))
}

/// A workload without any values from files.
fn without_values() -> SocialWorkload {
    SocialWorkload {
        data: Data {
            members: 0,
            friends_per_member: 0,
            confirmed_share: 1.0,
            pending_per_member: 0,
            friendships: Assignment::Ring,
            friendships_theta: 0.27,
            resources_per_member: 0,
            comments_per_resource: 0,
            top_k: 5,
            attribute_bytes: 200,
            image_bytes: 0,
            thumbnail_bytes: 0,
            resource_bytes: 64,
            comment_bytes: 64,
        },
        access: Access::default(),
        session: BTreeMap::new(),
    }
}

/// Refuses files without members, and actions on resources if there are no resources.
fn check(spec: &Spec, origins: &Origins) -> Result<(), PropertiesError> {
    let spec = spec.of::<SocialWorkload>()?;
    check_resources(&spec, origins)?;
    if spec.own.data.members == 0 && origins.get("data.members").is_none() {
        let message = "the number of members is missing; add the file with usercount, or --set data.members=10000";
        return Err(PropertiesError::Files { files: origins.files.clone(), message: message.into() });
    }
    Ok(())
}

fn check_resources(spec: &SpecOf<SocialWorkload>, origins: &Origins) -> Result<(), PropertiesError> {
    if spec.own.data.resources_per_member > 0 {
        return Ok(());
    }
    let advice = "change one of them, or use e.g. --set data.resources_per_member=10";
    for kind in spec.session_kinds() {
        let Some(share) = origins.get(&format!("mix.{}", kind.name)) else { continue };
        if !kind.steps.iter().any(|step| step.role.is_resource()) {
            continue;
        }
        return Err(match origins.get("data.resources_per_member") {
            Some(none) => PropertiesError::Contradiction {
                first: Box::new(none.clone()),
                second: Box::new(share.clone()),
                advice: format!("the data set has no resources; {advice}"),
            },
            None => PropertiesError::Value {
                property: share.clone(),
                message: "needs resources, and no file sets their number; use \
                          --set data.resources_per_member=10, or add a file that sets it"
                    .into(),
            },
        });
    }
    Ok(())
}

fn data(table: &mut Table, converted: &mut Draft) -> Result<(), PropertiesError> {
    if let Some((offset, property)) = table.number::<u64>("useroffset")?
        && offset > 0
    {
        let message = "not supported: ids start at 0, and fragments split the members; set useroffset=0".into();
        return Err(PropertiesError::Value { property, message });
    }
    if let Some((members, property)) = table.number("usercount")? {
        converted.spec.own.data.members = members;
        converted.origin("data.members", Some(&property));
    }
    if let Some((friends, property)) = table.number("friendcountperuser")? {
        converted.spec.own.data.friends_per_member = friends;
        converted.origin("data.friends_per_member", Some(&property));
    }
    let confirmed = table.share("confperc", 1.0)?;
    converted.spec.own.data.confirmed_share = confirmed.value;
    converted.origin("data.confirmed_share", confirmed.property.as_ref());
    if let Some((resources, property)) = table.number("resourcecountperuser")? {
        converted.spec.own.data.resources_per_member = resources;
        converted.origin("data.resources_per_member", Some(&property));
    }
    if let Some((clients, property)) = table.number("numclients")? {
        converted.spec.common.fragments = clients;
        converted.origin("fragments", Some(&property));
        converted.notes.push(format!("{property}: used as the number of fragments; a replayer can replay any number"));
    }
    Ok(())
}

fn images(table: &mut Table, converted: &mut Draft) -> Result<(), PropertiesError> {
    let size = table.number::<u32>("imagesize")?;
    let Some((true, wanted)) = table.switch("insertimage")? else { return Ok(()) };
    // 2 KB is BG's default.
    let kilobytes = size.as_ref().map_or(2, |(kilobytes, _)| *kilobytes);
    if let (0, Some((_, first))) = (kilobytes, &size) {
        let advice = "set imagesize to a size in KB, or insertimage=false".into();
        return Err(PropertiesError::Contradiction {
            first: Box::new(first.clone()),
            second: Box::new(wanted),
            advice,
        });
    }
    let Some(bytes) = kilobytes.checked_mul(1_024) else {
        let property = size.map_or(wanted, |(_, property)| property);
        return Err(PropertiesError::Value { property, message: "is too large; the unit is KB".into() });
    };
    converted.spec.own.data.image_bytes = bytes;
    converted.spec.own.data.thumbnail_bytes = THUMBNAIL_BYTES;
    converted.notes.push(format!("{wanted}: images of {bytes} bytes, and thumbnails of {THUMBNAIL_BYTES} bytes"));
    Ok(())
}

fn mix(table: &mut Table, converted: &mut Draft) -> Result<(), PropertiesError> {
    for key in ABSENT {
        let share = table.share(key, 0.0)?;
        if let (true, Some(property)) = (share.value > 0.0, share.property) {
            let message = "Encore does not have this action; set it to 0 and add its share to other actions".into();
            return Err(PropertiesError::Value { property, message });
        }
    }
    let mut shares = Vec::with_capacity(KINDS.len());
    for (key, kind) in KINDS {
        let share = table.share(key, 0.0)?;
        converted.add_share(kind, &share);
        shares.push(share);
    }
    check_sum(&converted.origins.files, &shares)
}

fn access(table: &mut Table, converted: &mut Draft) -> Result<(), PropertiesError> {
    let distribution = table.get("requestdistribution");
    let theta = table.number::<f64>("zipfianmean")?;
    let access = &mut converted.spec.own.access;
    access.distribution = match &distribution {
        // Uniform is BG's default.
        None => Distribution::Uniform,
        Some(property) => match property.value.as_str() {
            "dzipfian" | "zipfian" => Distribution::Zipfian,
            "uniform" => Distribution::Uniform,
            _ => {
                let message = "unsupported distribution; use dzipfian, zipfian or uniform".into();
                return Err(PropertiesError::Value { property: property.clone(), message });
            }
        },
    };
    if let (Distribution::Zipfian, Some((mean, property))) = (access.distribution, &theta) {
        access.theta = *mean;
        converted.origin("access.theta", Some(property));
    }
    if distribution.is_none() {
        converted.notes.push("no requestdistribution: members are drawn uniformly, as in BG".into());
    } else if let (Distribution::Uniform, Some((_, property))) = (converted.spec.own.access.distribution, theta) {
        converted.notes.push(format!("{property}: has no effect, since members are drawn uniformly"));
    }
    Ok(())
}

/// A delay that BG gives in milliseconds.
fn delay(table: &mut Table, converted: &mut Draft, key: &str, to: &str) -> Result<Delay, PropertiesError> {
    let Some((milliseconds, property)) = table.number::<u32>(key)? else { return Ok(Delay::default()) };
    let Some(mean_us) = milliseconds.checked_mul(1_000) else {
        let message = "is too large; the unit is milliseconds".into();
        return Err(PropertiesError::Value { property, message });
    };
    converted.origin(to, Some(&property));
    Ok(Delay { mean_us, ..Delay::default() })
}
