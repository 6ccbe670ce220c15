//! Whether a trace set fits on this machine, before anything of it is made.
//!
//! What it takes at the least is compared with what there is: a specification with three
//! zeros too many is refused at once, and none that would fit is.

use std::path::Path;

use schemas::spec::Spec;

use crate::GenerateError;

/// Bytes on disk that a row takes at the least, of the operations and of the data set:
/// encoded and compressed, the usual ones take 4 to 8.
const ROW_BYTES: f64 = 1.0;

/// Bytes of memory that a member takes at the least: her place among the ranks and back.
const MEMBER_BYTES: f64 = 8.0;

/// Bytes of memory of a friendship or an invitation of an assignment that is drawn.
const PAIR_BYTES: f64 = 4.0;

/// Refuses a specification whose trace set cannot be held here.
pub(crate) fn check(spec: &Spec, folder: &Path) -> Result<(), GenerateError> {
    let need = Need::of(spec);
    let refuse = |kind: &'static str, needed: f64, there: u64, whose: String| match needed > there as f64 {
        true => Err(GenerateError::NoRoom {
            kind,
            needed: size(needed),
            there: size(there as f64),
            whose,
            what: need.what.clone(),
        }),
        false => Ok(()),
    };
    if let Some((free, place)) = free_disk(folder) {
        refuse("on disk", need.disk_bytes, free, format!("{place} has free"))?;
    }
    if let Some(memory) = memory_bytes() {
        refuse("of memory", need.memory_bytes, memory, "this machine has".into())?;
    }
    Ok(())
}

/// What a trace set takes at the least.
struct Need {
    disk_bytes: f64,
    memory_bytes: f64,
    /// What decides it, in words.
    what: String,
}

impl Need {
    fn of(spec: &Spec) -> Need {
        let data = &spec.data;
        let members = data.members as f64;
        let friendships = members * data.confirmed_per_member() / 2.0;
        let invitations = members * data.waiting_per_member();
        let resources = members * data.resources_per_member as f64;
        let comments = resources * data.comments_per_resource as f64;
        let sessions = spec.sessions as f64;
        let rows = members + friendships + invitations + resources + comments;
        let pairs = match data.friendships {
            schemas::spec::Assignment::Ring => 0.0,
            _ => friendships + invitations,
        };
        Need {
            disk_bytes: (sessions + rows) * ROW_BYTES,
            memory_bytes: members * MEMBER_BYTES + pairs * PAIR_BYTES,
            what: format!(
                "{sessions:.0} sessions on {members:.0} members, {friendships:.0} friendships, {invitations:.0} \
                 invitations, {resources:.0} resources and {comments:.0} comments"
            ),
        }
    }
}

/// The bytes that a user may still write where a folder is or will be, and where that is.
fn free_disk(folder: &Path) -> Option<(u64, String)> {
    let folder = std::path::absolute(folder).ok()?;
    let place = folder.ancestors().find(|ancestor| ancestor.is_dir())?;
    let disk = rustix::fs::statvfs(place).ok()?;
    Some((disk.f_bavail.saturating_mul(disk.f_frsize), place.display().to_string()))
}

/// Memory and swap space of this machine, where the system tells.
fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok()
    };
    Some((kib("MemTotal")? + kib("SwapTotal").unwrap_or(0)) * 1024)
}

/// Bytes with a unit that people read.
fn size(bytes: f64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut bytes = bytes;
    let mut unit = 0;
    while bytes >= 1024.0 && unit + 1 < units.len() {
        bytes /= 1024.0;
        unit += 1;
    }
    format!("{bytes:.0} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(settings: &[&str]) -> Option<String> {
        let text =
            "name = 'a'\nsessions = 50\n[data]\nmembers = 1000\nfriends_per_member = 2\n[mix]\nview_profile = 1\n";
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let spec = Spec::parse_with(text, "a.toml", &settings).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.trace");
        let error = check(&spec, &target).err().map(|e| e.to_string());
        assert!(!target.exists());
        error
    }

    #[test]
    fn what_no_machine_holds_is_refused_before_it_begins() {
        assert_eq!(refused(&[]), None);
        let sessions = refused(&["sessions=999999999999999999"]).unwrap();
        assert!(sessions.contains("PiB on disk") && sessions.contains("has free"), "{sessions}");
        let resources = refused(&["data.resources_per_member=4294967295", "data.members=1000000"]).unwrap();
        assert!(resources.contains("4294967295000000 resources"), "{resources}");
        let members = refused(&["data.members=4294967295", "data.friends_per_member=1000", "data.friendships=uniform"]);
        let members = members.unwrap();
        assert!(members.contains("4294967295 members"), "{members}");
    }

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(
            [0.0, 1023.0, 1024.0, 3e9, 1e30].map(size),
            ["0 bytes", "1023 bytes", "1 KiB", "3 GiB", "867361737988 EiB"]
        );
    }
}
