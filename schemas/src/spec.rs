//! The workload specification: what a trace set is generated from (TOML).
//!
//! ```
//! let spec = schemas::spec::Spec::parse(r#"
//!     name = "small"
//!     sessions = 1000
//!     [data]
//!     members = 100
//!     friends_per_member = 10
//!     [mix]
//!     view_profile = 90
//!     invite_friend = 10
//! "#, "small.toml").unwrap();
//! assert_eq!(spec.fragments, 1);
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::{FileError, at};
use crate::social::Action;

/// A specification that is wrong: the file, the key, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// Not TOML, an unknown key or a value of the wrong type.
    #[error("{file}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Line, column and reason.
        message: String,
    },
    /// A value that cannot be.
    #[error("{file}: {key}: {message}")]
    Value {
        /// The file.
        file: String,
        /// The dotted key.
        key: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A workload: the data set, who is drawn, what is done, and how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The name of the trace set's folder.
    pub name: String,
    /// The workload family; `social` is the only one in this version.
    #[serde(default)]
    pub family: Family,
    /// All chance follows from this number.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How many sessions over all fragments.
    pub sessions: u64,
    /// Disjoint shares of the members; replayers work on whole fragments.
    #[serde(default = "default_fragments")]
    pub fragments: u32,
    /// What is in the store before the first session.
    pub data: Data,
    /// Which members act and are acted upon.
    #[serde(default)]
    pub access: Access,
    /// The share of each action, in any unit: only the proportions count.
    pub mix: BTreeMap<Action, f64>,
}

/// A workload family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// BG's actions on members, friendships, resources and comments.
    #[default]
    Social,
}

/// The data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// How many members.
    pub members: u64,
    /// Confirmed friends of each member; an even number.
    #[serde(default)]
    pub friends_per_member: u64,
    /// Invitations that wait for each member.
    #[serde(default)]
    pub pending_per_member: u64,
    /// Resources that each member owns, each on the wall of a random member.
    #[serde(default)]
    pub resources_per_member: u64,
    /// Comments on each resource.
    #[serde(default)]
    pub comments_per_resource: u64,
    /// K of View Top-K Resources.
    #[serde(default = "default_top_k")]
    pub top_k: u32,
    /// Length of a member's attributes, in characters.
    #[serde(default = "default_attribute_bytes")]
    pub attribute_bytes: u32,
    /// Length of a member's profile image; 0 for none.
    #[serde(default)]
    pub image_bytes: u32,
    /// Length of a member's thumbnail; 0 for none.
    #[serde(default)]
    pub thumbnail_bytes: u32,
    /// Length of a resource's text, in characters.
    #[serde(default = "default_text_bytes")]
    pub resource_bytes: u32,
    /// Length of a comment's text, in characters.
    #[serde(default = "default_text_bytes")]
    pub comment_bytes: u32,
}

/// Who is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// How members are drawn, as socialites and as targets.
    pub distribution: Distribution,
    /// The weight of rank i is i^-(1-theta), as in BG; `zipfian` only.
    pub theta: f64,
    /// Share of View Profile in which the socialite looks at herself; the rest
    /// draws the target like any other member (and may draw herself).
    pub own_profile_share: f64,
    /// A write prefers relations whose last write lies at least this many
    /// sessions back, so that a replay with that many threads hardly ever waits.
    pub dependency_window: u64,
}

/// A distribution over members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Every member alike.
    Uniform,
    /// The weight of rank i is i^-(1-theta).
    Zipfian,
}

impl Default for Access {
    fn default() -> Self {
        Access { distribution: Distribution::Zipfian, theta: 0.27, own_profile_share: 0.0, dependency_window: 1024 }
    }
}

fn default_seed() -> u64 {
    1
}
fn default_fragments() -> u32 {
    1
}
fn default_top_k() -> u32 {
    5
}
fn default_attribute_bytes() -> u32 {
    200
}
fn default_text_bytes() -> u32 {
    64
}

impl Spec {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Spec, SpecError> {
        let text = std::fs::read_to_string(path).map_err(at(path))?;
        Spec::parse(&text, &path.display().to_string())
    }

    /// Reads and checks a text; `file` is for the errors.
    pub fn parse(text: &str, file: &str) -> Result<Spec, SpecError> {
        Spec::parse_with(text, file, &[])
    }

    /// Like [`Spec::parse`], with `key=value` settings (dotted keys, TOML
    /// values) that replace or add to what the text says.
    pub fn parse_with(text: &str, file: &str, settings: &[String]) -> Result<Spec, SpecError> {
        let syntax = |message: String| SpecError::Syntax { file: file.into(), message: message.trim_end().into() };
        // Without settings the text is parsed as it is, so that errors keep line and column.
        let spec: Spec = if settings.is_empty() {
            toml::from_str(text).map_err(|e| syntax(e.to_string()))?
        } else {
            let mut table: toml::Table = toml::from_str(text).map_err(|e| syntax(e.to_string()))?;
            for setting in settings {
                apply_setting(&mut table, setting).map_err(|m| syntax(format!("--set {setting}: {m}")))?;
            }
            table.try_into().map_err(|e: toml::de::Error| syntax(e.to_string()))?
        };
        spec.check(file)?;
        Ok(spec)
    }

    /// Refuses values that no trace set could be generated from.
    pub fn check(&self, file: &str) -> Result<(), SpecError> {
        let wrong = |key: &str, message: String| Err(SpecError::Value { file: file.into(), key: key.into(), message });
        let name_fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if self.name.is_empty() || self.name.starts_with('.') || !self.name.chars().all(name_fits) {
            return wrong("name", format!("{:?} is not a name of letters, digits, '-', '_' and '.'", self.name));
        }
        if self.sessions == 0 {
            return wrong("sessions", "must be at least 1".into());
        }
        if self.fragments == 0 || self.fragments > 65_536 {
            return wrong("fragments", format!("{} is not between 1 and 65,536", self.fragments));
        }
        let data = &self.data;
        if data.members == 0 || data.members > u32::MAX as u64 {
            return wrong("data.members", format!("{} is not between 1 and {}", data.members, u32::MAX));
        }
        let members_in_fragment = data.members / self.fragments as u64;
        if members_in_fragment < 1 {
            return wrong(
                "fragments",
                format!("{} fragments of {} members leave some without any", self.fragments, data.members),
            );
        }
        if !data.friends_per_member.is_multiple_of(2) {
            return wrong(
                "data.friends_per_member",
                format!("{} is odd; friendships are laid in a ring, so take an even number", data.friends_per_member),
            );
        }
        let related = data.friends_per_member + 2 * data.pending_per_member;
        // D-Zipfian deals popular members one by one: a fragment can be smaller
        // than the average, which the generator checks again.
        if related + 1 > members_in_fragment {
            return wrong(
                "data.friends_per_member",
                format!(
                    "{} friends and {} invitations to and from each member need more than {related} members in a fragment, and there are {members_in_fragment}; take fewer friends, fewer fragments or more members",
                    data.friends_per_member, data.pending_per_member
                ),
            );
        }
        if data.top_k == 0 {
            return wrong("data.top_k", "must be at least 1".into());
        }
        let resources = data.members.checked_mul(data.resources_per_member);
        let comments = resources.and_then(|r| r.checked_mul(data.comments_per_resource));
        if comments.is_none_or(|c| c > i64::MAX as u64 / 2) || resources.is_some_and(|r| r > i64::MAX as u64 / 2) {
            return wrong("data.comments_per_resource", "more comments than ids can count".into());
        }
        let access = &self.access;
        if !(access.theta > 0.0 && access.theta <= 1.0) {
            return wrong(
                "access.theta",
                format!("{} is not in (0, 1]; the weight of rank i is i^-(1-theta)", access.theta),
            );
        }
        if !(0.0..=1.0).contains(&access.own_profile_share) {
            return wrong("access.own_profile_share", format!("{} is not between 0 and 1", access.own_profile_share));
        }
        for (action, share) in &self.mix {
            let key = format!("mix.{}", action.name());
            if !share.is_finite() || *share < 0.0 {
                return wrong(&key, format!("{share} is not a share; take a number of at least 0"));
            }
            let needs_resources = action.targets_resource();
            if *share > 0.0 && needs_resources && data.resources_per_member == 0 {
                return wrong(&key, "there are no resources; set data.resources_per_member".into());
            }
            if *share > 0.0 && data.members == 1 && *action == Action::InviteFriend {
                return wrong(&key, "there is only one member; set data.members".into());
            }
        }
        if self.mix.values().sum::<f64>() <= 0.0 {
            return wrong("mix", "is empty: give at least one action a share above 0".into());
        }
        if !self.mix.iter().any(|(a, share)| a.is_read() && *share > 0.0) && self.mix.values().sum::<f64>() > 0.0 {
            return wrong(
                "mix",
                "has no action that can always be performed: give a read a share above 0, however small".into(),
            );
        }
        Ok(())
    }

    /// What all trace sets of this workload share, however long they are:
    /// BLAKE3 over the format version and the specification without `sessions`
    /// and `name`. Two trace sets with one workload id have the same data set,
    /// and the shorter one's sessions are a prefix of the longer one's.
    pub fn workload_id(&self) -> String {
        let mut same = self.clone();
        same.sessions = 0;
        same.name.clear();
        same.mix.retain(|_, share| *share > 0.0);
        let text = serde_json::to_string(&same).unwrap_or_else(|e| unreachable!("a spec is plain data: {e}"));
        let mut hasher = blake3::Hasher::new();
        hasher.update(&crate::TRACE_FORMAT_VERSION.to_le_bytes());
        hasher.update(text.as_bytes());
        hasher.finalize().to_hex()[..32].to_string()
    }
}

/// Sets one dotted key to a TOML value (a bare word counts as a string).
fn apply_setting(table: &mut toml::Table, setting: &str) -> Result<(), String> {
    let (key, text) = setting.split_once('=').ok_or("is not key=value")?;
    let value = toml::from_str::<toml::Table>(&format!("v = {text}"))
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| toml::Value::String(text.into()));
    let mut path: Vec<&str> = key.split('.').collect();
    let last = path.pop().filter(|k| !k.is_empty()).ok_or("has an empty key")?;
    let mut at = table;
    for part in path {
        at = at
            .entry(part)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()))
            .as_table_mut()
            .ok_or_else(|| format!("{part} is not a table"))?;
    }
    at.insert(last.into(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "name = \"t\"\nsessions = 10\n[data]\nmembers = 100\nfriends_per_member = 10\n[mix]\nview_profile = 1\n";

    fn check(change: &str, to: &str, expect: &str) {
        let text = GOOD.replace(change, to);
        assert_ne!(text, GOOD, "the case changes nothing");
        let error = Spec::parse(&text, "t.toml").unwrap_err().to_string();
        assert!(error.starts_with("t.toml: ") && error.contains(expect), "{error:?} lacks {expect:?}");
    }

    #[test]
    fn wrong_keys_and_values_are_named() {
        check("members = 100", "membres = 100", "membres");
        check("members = 100", "members = \"many\"", "members");
        check("members = 100", "members = 0", "data.members");
        check("members = 100", "members = 10", "data.friends_per_member: 10 friends");
        check("friends_per_member = 10", "friends_per_member = 3", "3 is odd");
        check("view_profile = 1", "view_profil = 1", "view_profil");
        check("view_profile = 1", "view_profile = 0", "mix: is empty");
        check("view_profile = 1", "view_profile = -1", "mix.view_profile: -1");
        check("view_profile = 1", "view_profile = 1\nview_comments = 1", "data.resources_per_member");
        check("view_profile = 1", "invite_friend = 1", "give a read a share");
        check("sessions = 10", "sessions = 0", "sessions: must be at least 1");
        check("name = \"t\"", "name = \"../t\"", "name: ");
        check("sessions = 10", "sessions = 10\nfragments = 0", "fragments: 0");
        check("[mix]", "[access]\ntheta = 0.0\n[mix]", "access.theta");
    }

    #[test]
    fn settings_replace_keys() {
        let set = |s: &str| Spec::parse_with(GOOD, "t.toml", &[s.to_string()]);
        assert_eq!(set("data.members=50").unwrap().data.members, 50);
        assert_eq!(set("access.distribution=uniform").unwrap().access.distribution, Distribution::Uniform);
        assert!(set("data.membres=50").unwrap_err().to_string().contains("membres"));
        assert!(set("data").unwrap_err().to_string().contains("not key=value"));
    }

    #[test]
    fn the_workload_id_ignores_length_and_name_alone() {
        let a = Spec::parse(GOOD, "t").unwrap();
        let longer = Spec { sessions: 99, name: "u".into(), ..a.clone() };
        let other = Spec { seed: 99, ..a.clone() };
        assert_eq!(a.workload_id(), longer.workload_id());
        assert_ne!(a.workload_id(), other.workload_id());
    }
}
