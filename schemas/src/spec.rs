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

use crate::files::{FileError, at, is_plain_name};
use crate::session::{Role, SessionKind, Step, built_in, built_in_steps};
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
    /// The share of all draws that falls on each fragment, in any unit, for
    /// replayers of unequal speed; one weight a fragment. Empty: equal shares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fragment_weights: Vec<f64>,
    /// What is in the store before the first session.
    pub data: Data,
    /// Which members act and are acted upon.
    #[serde(default)]
    pub access: Access,
    /// What a thread waits between two actions of a session.
    #[serde(default)]
    pub think_time: Delay,
    /// What a thread waits between two sessions.
    #[serde(default)]
    pub inter_arrival_time: Delay,
    /// The share of each kind of session, in any unit: only the proportions
    /// count. A name is that of an action (a session of this action alone), of
    /// one of BG's sessions, or of one of `session`.
    pub mix: BTreeMap<String, f64>,
    /// Sessions composed here, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub session: BTreeMap<String, Composed>,
}

/// A session that the specification composes from actions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Composed {
    /// What is done, in order, each an action and whom or what it is about:
    /// `"view_profile friend"`.
    pub steps: Vec<Step>,
}

/// A waiting time, drawn by the generator and fixed in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Delay {
    /// Its mean, in microseconds; 0 for none.
    pub mean_us: u32,
    /// How it is distributed.
    pub distribution: DelayDistribution,
}

/// How a waiting time is distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayDistribution {
    /// Always the mean.
    #[default]
    Constant,
    /// Exponentially, as between the events of a Poisson process.
    Exponential,
}

/// The most steps of a composed session.
const STEPS_MAX: usize = 1_000;

/// The most kinds of sessions: files number them in one byte.
const KINDS_MAX: usize = 100;

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
    /// Friends of each member; the mean, where the assignment is not a ring.
    #[serde(default)]
    pub friends_per_member: u64,
    /// The share of `friends_per_member` that is confirmed; the rest are
    /// invitations that wait (BG's `confperc`).
    #[serde(default = "default_confirmed_share")]
    pub confirmed_share: f64,
    /// Invitations that wait for each member, besides those.
    #[serde(default)]
    pub pending_per_member: u64,
    /// Who is friends with whom.
    #[serde(default)]
    pub friendships: Assignment,
    /// The weight of rank i in a `zipfian` assignment is i^-(1-theta).
    #[serde(default = "default_theta")]
    pub friendships_theta: f64,
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

/// How friendships and invitations are assigned to the members of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assignment {
    /// Members stand in a ring in random order and are friends of their
    /// neighbours: every member has equally many. Takes no memory.
    #[default]
    Ring,
    /// Both sides of each are drawn uniformly.
    Uniform,
    /// Both sides are drawn by a Zipfian over the same ranks as the access:
    /// popular members have more friends.
    Zipfian,
}

impl Data {
    /// Confirmed friends of each member; the mean, where it is not a ring.
    pub fn confirmed_per_member(&self) -> f64 {
        // Shares such as 0.9 of 10 must come out whole.
        (self.friends_per_member as f64 * self.confirmed_share * 1e9).round() / 1e9
    }

    /// Invitations that wait for each member; the mean, where it is not a ring.
    pub fn waiting_per_member(&self) -> f64 {
        self.friends_per_member as f64 - self.confirmed_per_member() + self.pending_per_member as f64
    }
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
    /// Among so many consecutive sessions of the trace (over all fragments) no
    /// socialite acts twice; 0 lets her act again at once.
    ///
    /// A member acts in one session at a time, so a replay has to wait for a
    /// socialite who is busy, and the most popular one bounds how many threads
    /// can be busy. BG draws another member instead; here the generator does,
    /// for as many sessions as may be under way. The default is twice the 256
    /// threads that the ready specifications and plans go up to, since a session
    /// that takes longer than others lets as many start meanwhile. A fragment's
    /// share of the window is at most half of its members, so that small
    /// populations stay possible; the manifest says what is in effect.
    pub unique_window: u64,
}

/// The largest [`Access::unique_window`]: there are no more members than this.
const UNIQUE_WINDOW_MAX: u64 = 1 << 32;

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
        Access {
            distribution: Distribution::Zipfian,
            theta: 0.27,
            own_profile_share: 0.0,
            dependency_window: 1024,
            unique_window: 512,
        }
    }
}

fn default_confirmed_share() -> f64 {
    1.0
}
fn default_theta() -> f64 {
    0.27
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
        let spec = Spec::parse_unchecked(text, file, settings)?;
        spec.check(file)?;
        Ok(spec)
    }

    /// Like [`Spec::parse_with`] without [`Spec::check`].
    pub fn parse_unchecked(text: &str, file: &str, settings: &[String]) -> Result<Spec, SpecError> {
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
        Ok(spec)
    }

    /// The specification as the text of a file, with every default written out.
    ///
    /// Fails for values that TOML cannot write.
    pub fn to_toml(&self) -> Result<String, SpecError> {
        toml::to_string(self).map_err(|e| SpecError::Syntax { file: self.name.clone(), message: e.to_string() })
    }

    /// Refuses values that no trace set could be generated from.
    pub fn check(&self, file: &str) -> Result<(), SpecError> {
        let wrong = |key: &str, message: String| Err(SpecError::Value { file: file.into(), key: key.into(), message });
        if !is_plain_name(&self.name) {
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
        if !(0.0..=1.0).contains(&data.confirmed_share) {
            return wrong("data.confirmed_share", format!("{} is not between 0 and 1", data.confirmed_share));
        }
        if !(data.friendships_theta > 0.0 && data.friendships_theta <= 1.0) {
            return wrong("data.friendships_theta", format!("{} is not in (0, 1]", data.friendships_theta));
        }
        let confirmed = data.confirmed_per_member();
        if data.friendships == Assignment::Ring && confirmed % 2.0 != 0.0 {
            let (key, is) = match confirmed.fract() == 0.0 {
                true if data.confirmed_share == 1.0 => ("data.friends_per_member", "is odd"),
                true => ("data.confirmed_share", "confirmed friends a member is odd"),
                false => ("data.confirmed_share", "confirmed friends a member is no whole number"),
            };
            let message = format!(
                "{confirmed} {is}; in a ring it has to be even: take another number, or data.friendships = \"uniform\""
            );
            return wrong(key, message);
        }
        let (confirmed, waiting) = (confirmed.ceil() as u64, data.waiting_per_member().ceil() as u64);
        let related = match data.friendships {
            Assignment::Ring => confirmed + 2 * waiting,
            // Pairs are drawn until a new one comes: that needs room.
            Assignment::Uniform | Assignment::Zipfian => 2 * (confirmed + 2 * waiting),
        };
        // D-Zipfian deals popular members one by one: a fragment can be smaller
        // than the average, which the generator checks again.
        if related + 1 > members_in_fragment {
            return wrong(
                "data.friends_per_member",
                format!(
                    "{confirmed} friends and {waiting} invitations to and from each member need more than {related} members in a fragment, and there are {members_in_fragment}; take fewer friends, fewer fragments or more members"
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
        if !(0.0..=1.0).contains(&access.theta) {
            return wrong(
                "access.theta",
                format!("{} is not between 0 and 1; the weight of rank i is i^-(1-theta)", access.theta),
            );
        }
        if !(0.0..=1.0).contains(&access.own_profile_share) {
            return wrong("access.own_profile_share", format!("{} is not between 0 and 1", access.own_profile_share));
        }
        if access.unique_window > UNIQUE_WINDOW_MAX {
            let message = format!(
                "{} is more sessions than there can be members ({UNIQUE_WINDOW_MAX}); take about twice the number of threads",
                access.unique_window
            );
            return wrong("access.unique_window", message);
        }
        if !self.fragment_weights.is_empty() {
            if self.fragment_weights.len() != self.fragments as usize {
                let message = format!(
                    "{} weights for {} fragments; give one each, or none",
                    self.fragment_weights.len(),
                    self.fragments
                );
                return wrong("fragment_weights", message);
            }
            if let Some(weight) = self.fragment_weights.iter().find(|w| !(w.is_finite() && **w > 0.0)) {
                return wrong("fragment_weights", format!("{weight} is not a number above 0"));
            }
        }
        self.check_mix(file)
    }

    fn check_mix(&self, file: &str) -> Result<(), SpecError> {
        let wrong = |key: &str, message: String| Err(SpecError::Value { file: file.into(), key: key.into(), message });
        for (name, composed) in &self.session {
            let key = format!("session.{name}");
            let name_fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if name.is_empty() || !name.chars().all(name_fits) {
                return wrong(&key, "is not a name of letters, digits, '-' and '_'".into());
            }
            if built_in_steps(name).is_some() {
                return wrong(&key, "is the name of an action or of one of BG's sessions; take another".into());
            }
            if composed.steps.is_empty() || composed.steps.len() > STEPS_MAX {
                return wrong(&key, format!("has {} steps, not 1 to {STEPS_MAX}", composed.steps.len()));
            }
        }
        for (name, share) in &self.mix {
            let key = format!("mix.{name}");
            if !share.is_finite() || *share < 0.0 {
                return wrong(&key, format!("{share} is not a share; take a number of at least 0"));
            }
            let Some(steps) = self.steps(name) else {
                let sessions: Vec<&str> = built_in().iter().map(|(name, _)| *name).collect();
                let actions: Vec<&str> = Action::ALL.iter().map(|a| a.name()).collect();
                return wrong(
                    &key,
                    format!(
                        "is no kind of session; there are the actions {}, BG's {}, and what [session.NAME] composes",
                        actions.join(", "),
                        sessions.join(", ")
                    ),
                );
            };
            if *share == 0.0 {
                continue;
            }
            let needs = |role: fn(Role) -> bool| steps.iter().any(|step| role(step.role));
            if self.data.resources_per_member == 0 && needs(Role::is_resource) {
                return wrong(&key, "there are no resources; set data.resources_per_member".into());
            }
            if self.data.members == 1 && needs(|role| role == Role::Stranger) {
                return wrong(&key, "there is only one member; set data.members".into());
            }
        }
        let kinds = self.kinds();
        if kinds.is_empty() {
            return wrong("mix", "is empty: give at least one action or session a share above 0".into());
        }
        if kinds.len() > KINDS_MAX {
            return wrong("mix", format!("has {} kinds of sessions, at most {KINDS_MAX} are possible", kinds.len()));
        }
        Ok(())
    }

    /// The steps of a kind of session; none when no kind has this name.
    pub fn steps(&self, name: &str) -> Option<Vec<Step>> {
        built_in_steps(name).or_else(|| self.session.get(name).map(|composed| composed.steps.clone()))
    }

    /// The kinds of sessions with a share above 0, by name. Files number them in
    /// this order.
    pub fn kinds(&self) -> Vec<SessionKind> {
        let wanted = self.mix.iter().filter(|(_, share)| **share > 0.0);
        wanted
            .filter_map(|(name, share)| {
                Some(SessionKind { name: name.clone(), share: *share, steps: self.steps(name)? })
            })
            .collect()
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
        check("friends_per_member = 10", "friends_per_member = 3", "data.friends_per_member: 3 is odd");
        check(
            "friends_per_member = 10",
            "friends_per_member = 10\nconfirmed_share = 0.9",
            "9 confirmed friends a member is odd",
        );
        check(
            "friends_per_member = 10",
            "friends_per_member = 10\nconfirmed_share = 0.85",
            "8.5 confirmed friends a member is no",
        );
        check(
            "friends_per_member = 10",
            "friends_per_member = 10\nconfirmed_share = 2",
            "data.confirmed_share: 2 is not",
        );
        check(
            "friends_per_member = 10",
            "friends_per_member = 60\nfriendships = \"uniform\"",
            "need more than 120 members",
        );
        check("sessions = 10", "sessions = 10\nfragment_weights = [1, 2]", "fragment_weights: 2 weights for 1");
        check("sessions = 10", "sessions = 10\nfragment_weights = [0]", "fragment_weights: 0 is not");
        check("[mix]", "[think_time]\nmean_ms = 3\n[mix]", "mean_ms");
        check("view_profile = 1", "view_profile = 1\nbrowse = 1", "mix.browse: is no kind of session");
        check("view_profile = 1", "delete_comment_session = 1", "data.resources_per_member");
        let composed = |steps: &str| format!("view_profile = 1\n[session.browse]\nsteps = {steps}");
        check("view_profile = 1", &composed("[]"), "session.browse: has 0 steps");
        check("view_profile = 1", &composed("[\"invite_friend me\"]"), "invite_friend is about one of stranger");
        check(
            "view_profile = 1",
            "view_profile = 1\n[session.view_profile]\nsteps = [\"view_profile me\"]",
            "take another",
        );
        check("view_profile = 1", "view_profil = 1", "view_profil");
        check("view_profile = 1", "view_profile = 0", "mix: is empty");
        check("view_profile = 1", "view_profile = -1", "mix.view_profile: -1");
        check("view_profile = 1", "view_profile = 1\nview_comments = 1", "data.resources_per_member");
        check("sessions = 10", "sessions = 0", "sessions: must be at least 1");
        check("name = \"t\"", "name = \"../t\"", "name: ");
        check("sessions = 10", "sessions = 10\nfragments = 0", "fragments: 0");
        check("[mix]", "[access]\ntheta = -0.1\n[mix]", "access.theta");
        check("[mix]", "[access]\nunique_window = 4_294_967_297\n[mix]", "access.unique_window: 4294967297 is more");
    }

    #[test]
    fn sessions_are_built_in_or_composed() {
        let text = GOOD.replace(
            "view_profile = 1",
            "view_profile = 3\nbrowse = 1\nthaw_friendship_session = 0\n[session.browse]\n\
             steps = [\"list_friends me\", \"view_profile friend\"]",
        );
        let spec = Spec::parse(&text, "t.toml").unwrap();
        let kinds: Vec<(String, usize)> = spec.kinds().into_iter().map(|k| (k.name, k.steps.len())).collect();
        assert_eq!(kinds, [("browse".to_string(), 2), ("view_profile".to_string(), 1)]);
        assert_eq!(Spec::parse(&spec.to_toml().unwrap(), "again.toml").unwrap(), spec);
        // A share of half an action is what uniform assignment can do.
        let uniform = text.replace(
            "friends_per_member = 10",
            "friends_per_member = 7\nfriendships = \"uniform\"\nconfirmed_share = 0.9",
        );
        let data = Spec::parse(&uniform, "t.toml").unwrap().data;
        assert_eq!((data.confirmed_per_member(), data.waiting_per_member() > 0.699), (6.3, true));
    }

    /// BG has mixes of writes alone, such as its `UpdateOnly`.
    #[test]
    fn a_mix_may_be_of_writes_alone() {
        let spec = Spec::parse(&GOOD.replace("view_profile = 1", "invite_friend = 1"), "t.toml").unwrap();
        assert_eq!(spec.kinds().len(), 1);
    }

    #[test]
    fn the_window_of_unique_socialites_has_a_default_and_a_largest() {
        let window = |to: &str| Spec::parse(&GOOD.replace("[mix]", to), "t.toml").unwrap().access.unique_window;
        assert_eq!(window("[mix]"), 512);
        assert_eq!(window("[access]\nunique_window = 0\n[mix]"), 0);
        // More than there are members is for the generator to cap.
        assert_eq!(window("[access]\nunique_window = 4_294_967_296\n[mix]"), 1 << 32);
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
