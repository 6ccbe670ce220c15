//! The least room that a social network and its trace take.

use schemas::spec::SpecOf;
use schemas::words::plural;
use schemas::workload::social::{Assignment, SocialWorkload};

use crate::core::room::{Need, ROW_BYTES};

/// The least number of bytes of memory for a member: the member of a rank, and the rank of a member.
const MEMBER_BYTES: f64 = 8.0;

/// Bytes of memory for a drawn friendship or invitation.
const PAIR_BYTES: f64 = 4.0;

/// The least that the trace set of a specification takes.
pub(crate) fn need(spec: &SpecOf<SocialWorkload>) -> Need {
    let data = &spec.own.data;
    let members = data.members as f64;
    let friendships = members * data.confirmed_per_member() / 2.0;
    let invitations = members * data.waiting_per_member();
    let resources = members * data.resources_per_member as f64;
    let comments = resources * data.comments_per_resource as f64;
    let sessions = spec.common.sessions as f64;
    let rows = members + friendships + invitations + resources + comments;
    let pairs = match data.friendships {
        Assignment::Ring => 0.0,
        _ => friendships + invitations,
    };
    Need {
        disk_bytes: (sessions + rows) * ROW_BYTES,
        memory_bytes: members * MEMBER_BYTES + pairs * PAIR_BYTES,
        what: format!(
            "{} on {}, {}, {}, {} and {}",
            plural(spec.common.sessions, "session"),
            plural(data.members, "member"),
            plural(friendships as u64, "friendship"),
            plural(invitations as u64, "invitation"),
            plural(resources as u64, "resource"),
            plural(comments as u64, "comment"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::room::check;

    fn refused(settings: &[&str]) -> Option<String> {
        let text =
            "name = 'a'\nsessions = 50\n[data]\nmembers = 1000\nfriends_per_member = 2\n[mix]\nview_profile = 1\n";
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let spec = SpecOf::<SocialWorkload>::parse_with(text, "a.toml", &settings).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.trace");
        let error = check(&need(&spec), &target).err().map(|e| e.to_string());
        assert!(!target.exists());
        error
    }

    #[test]
    fn trace_sets_too_large_for_the_machine_are_refused_at_once() {
        assert_eq!(refused(&[]), None);
        let sessions = refused(&["sessions=999999999999999999"]).unwrap();
        assert!(sessions.contains("PiB on disk") && sessions.contains("the free space of "), "{sessions}");
        assert!(sessions.contains("(999,999,999,999,999,999 sessions on 1,000 members"), "{sessions}");
        let resources = refused(&["data.resources_per_member=4294967295", "data.members=1000000"]).unwrap();
        assert!(resources.contains("4,294,967,295,000,000 resources"), "{resources}");
        let members = refused(&["data.members=4294967295", "data.friends_per_member=1000", "data.friendships=uniform"]);
        let members = members.unwrap();
        assert!(members.contains("4,294,967,295 members"), "{members}");
    }
}
