//! BG's keys (bg-2013; the names are those of its implementation) in the words
//! of a specification.

use schemas::spec::{Delay, Distribution};

use super::table::Table;
use super::{Converted, PropertiesError, check_sum};

/// BG's sessions and actions, and what they are called here.
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

/// BG's actions and sessions that there are none of here.
const ABSENT: [&str; 6] = [
    "ViewNewsFeedAction",
    "GetShortestDistanceAction",
    "ListCommonFriendsAction",
    "ListFriendsOfFriendsAction",
    "unFriendAcceptProportion",
    "unFriendRejectProportion",
];

/// Keys of a rating, and who decides that here.
const RATING: [(&str, &str); 9] = [
    ("threadcount", "`coord rate --first-threads`, or `coord run --threads`"),
    ("maxexecutiontime", "the time in `coord rate --sla \"95% < 100ms, 0.1% unpredictable, 60s\"`"),
    ("expectedlatency", "the response time in `coord rate --sla \"95% < 100ms, 0.1% unpredictable, 60s\"`"),
    ("db", "`coord rate --store URL`"),
    ("exportfile", "`coord rate --runs DIR`"),
    ("warmup", "the plan of an experiment, see `coord rate --help`"),
    ("warmupthreads", "the plan of an experiment, see `coord rate --help`"),
    ("monitor", "the plan of an experiment, see `coord rate --help`"),
    ("target", "the plan of an experiment, see `coord rate --help`"),
];

/// Keys about BG's own machinery.
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

/// Bytes of BG's thumbnails (bg-2013, section C).
const THUMBNAIL_BYTES: u32 = 2_048;

/// Takes over what the table says.
pub(super) fn convert(table: &mut Table, converted: &mut Converted) -> Result<(), PropertiesError> {
    data(table, converted)?;
    images(table, converted)?;
    mix(table, converted)?;
    access(table, converted)?;
    converted.unchecked.think_time = delay(table, converted, "thinktime", "think_time.mean_us")?;
    converted.unchecked.inter_arrival_time = delay(table, converted, "interarrivaltime", "inter_arrival_time.mean_us")?;
    converted.set_sessions(table.number("operationcount")?);
    converted.note_keys(table, &RATING);
    table.ignore(&WITHOUT_MEANING);
    Ok(())
}

fn data(table: &mut Table, converted: &mut Converted) -> Result<(), PropertiesError> {
    if let Some((offset, place)) = table.number::<u64>("useroffset")?
        && offset > 0
    {
        let message = "ids count from 0 here, and fragments share out the members; set it to 0".into();
        return Err(PropertiesError::Value { place, message });
    }
    if let Some((members, place)) = table.number("usercount")? {
        converted.unchecked.data.members = members;
        converted.origin("data.members", Some(&place));
    }
    if let Some((friends, place)) = table.number("friendcountperuser")? {
        converted.unchecked.data.friends_per_member = friends;
        converted.origin("data.friends_per_member", Some(&place));
    }
    let confirmed = table.share("confperc", 1.0)?;
    converted.unchecked.data.confirmed_share = confirmed.value;
    converted.origin("data.confirmed_share", confirmed.place.as_ref());
    if let Some((resources, place)) = table.number("resourcecountperuser")? {
        converted.unchecked.data.resources_per_member = resources;
        converted.origin("data.resources_per_member", Some(&place));
    }
    if let Some((clients, place)) = table.number("numclients")? {
        converted.unchecked.fragments = clients;
        converted.origin("fragments", Some(&place));
        converted.notes.push(format!("{place}: as many fragments; a replayer takes any number of them"));
    }
    Ok(())
}

fn images(table: &mut Table, converted: &mut Converted) -> Result<(), PropertiesError> {
    let size = table.number::<u32>("imagesize")?;
    let Some((true, wanted)) = table.switch("insertimage")? else { return Ok(()) };
    // BG's default.
    let kilobytes = size.as_ref().map_or(2, |(kilobytes, _)| *kilobytes);
    if let (0, Some((_, first))) = (kilobytes, &size) {
        let advice = "give the size in KB, or insertimage=false".into();
        return Err(PropertiesError::Contradiction {
            first: Box::new(first.clone()),
            second: Box::new(wanted),
            advice,
        });
    }
    let Some(bytes) = kilobytes.checked_mul(1_024) else {
        let place = size.map_or(wanted, |(_, place)| place);
        return Err(PropertiesError::Value { place, message: "is too large; it counts KB".into() });
    };
    converted.unchecked.data.image_bytes = bytes;
    converted.unchecked.data.thumbnail_bytes = THUMBNAIL_BYTES;
    converted.notes.push(format!("{wanted}: images of {bytes} bytes, and thumbnails of {THUMBNAIL_BYTES} bytes"));
    Ok(())
}

fn mix(table: &mut Table, converted: &mut Converted) -> Result<(), PropertiesError> {
    for key in ABSENT {
        let share = table.share(key, 0.0)?;
        if let (true, Some(place)) = (share.value > 0.0, share.place) {
            let message = "there is no such action here; set it to 0 and share it out among the others".into();
            return Err(PropertiesError::Value { place, message });
        }
    }
    let mut shares = Vec::with_capacity(KINDS.len());
    for (key, kind) in KINDS {
        let share = table.share(key, 0.0)?;
        converted.add_share(kind, &share);
        shares.push(share);
    }
    check_sum(&converted.files, &shares)
}

fn access(table: &mut Table, converted: &mut Converted) -> Result<(), PropertiesError> {
    let distribution = table.get("requestdistribution");
    let theta = table.number::<f64>("zipfianmean")?;
    let access = &mut converted.unchecked.access;
    access.distribution = match &distribution {
        // BG's default.
        None => Distribution::Uniform,
        Some(place) => match place.value.as_str() {
            "dzipfian" | "zipfian" => Distribution::Zipfian,
            "uniform" => Distribution::Uniform,
            _ => {
                let message = "there is no such distribution here; take dzipfian, zipfian or uniform".into();
                return Err(PropertiesError::Value { place: place.clone(), message });
            }
        },
    };
    if let (Distribution::Zipfian, Some((mean, place))) = (access.distribution, &theta) {
        access.theta = *mean;
        converted.origin("access.theta", Some(place));
    }
    if distribution.is_none() {
        converted.notes.push("no requestdistribution: members are drawn uniformly, as in BG".into());
    } else if let (Distribution::Uniform, Some((_, place))) = (converted.unchecked.access.distribution, theta) {
        converted.notes.push(format!("{place}: has no effect, since members are drawn uniformly"));
    }
    Ok(())
}

/// A waiting time that BG gives in milliseconds.
fn delay(table: &mut Table, converted: &mut Converted, key: &str, to: &str) -> Result<Delay, PropertiesError> {
    let Some((milliseconds, place)) = table.number::<u32>(key)? else { return Ok(Delay::default()) };
    let Some(mean_us) = milliseconds.checked_mul(1_000) else {
        let message = "is too large; it counts milliseconds".into();
        return Err(PropertiesError::Value { place, message });
    };
    converted.origin(to, Some(&place));
    Ok(Delay { mean_us, ..Delay::default() })
}
