//! The `social` family: members, friendships, resources and comments (BG).

pub mod dataset;
mod digest;
mod payload;
mod statistics;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ActorWords, Workload};
use crate::social::session::{Role, SessionKind, Step, built_in, built_in_steps};
use crate::social::{Action, Social};
use crate::spec::{SpecOf, Wrong};
use crate::words::thousands;
pub use payload::Payload;
pub use statistics::{Bucket, Histogram, SocialStatistics, SocialiteStatistics, TargetStatistics};

/// What a specification of the family says besides what every one has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SocialWorkload {
    /// What is in the store before the first session.
    pub data: Data,
    /// How members are drawn, as socialites and as targets.
    #[serde(default)]
    pub access: Access,
    /// Sessions composed here, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub session: BTreeMap<String, Composed>,
}

/// A session that the specification composes from actions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Composed {
    /// The steps, in order. Each one is an action and what it is about: `"view_profile friend"`.
    pub steps: Vec<Step>,
}

/// The most steps of a composed session.
const STEPS_MAX: usize = 1_000;

/// The data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// How many members.
    pub members: u64,
    /// Friends of each member; the mean, unless the assignment is a ring.
    #[serde(default)]
    pub friends_per_member: u64,
    /// The share of `friends_per_member` that is confirmed (BG's `confperc`). The rest are
    /// pending invitations.
    #[serde(default = "default_confirmed_share")]
    pub confirmed_share: f64,
    /// Further pending invitations to each member.
    #[serde(default)]
    pub pending_per_member: u64,
    /// How friendships and invitations are assigned to members.
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
    /// Members are in a ring in random order and are friends of their neighbours: every member
    /// has the same number of friends. Takes no memory.
    #[default]
    Ring,
    /// Both members of each pair are drawn uniformly.
    Uniform,
    /// Both members are drawn by a Zipfian distribution over the same ranks as the access:
    /// popular members have more friends.
    Zipfian,
}

impl Data {
    /// Confirmed friends of each member; the mean, unless the assignment is a ring.
    pub fn confirmed_per_member(&self) -> f64 {
        // Rounded, so that 0.9 of 10, for example, is a whole number.
        (self.friends_per_member as f64 * self.confirmed_share * 1e9).round() / 1e9
    }

    /// Pending invitations to each member; the mean, unless the assignment is a ring.
    pub fn waiting_per_member(&self) -> f64 {
        self.friends_per_member as f64 - self.confirmed_per_member() + self.pending_per_member as f64
    }
}

/// How members are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// The distribution, for socialites and for targets.
    pub distribution: Distribution,
    /// The weight of rank i is i^-(1-theta), as in BG; `zipfian` only.
    pub theta: f64,
    /// Share of View Profile in which the socialite views her own profile. The others draw the
    /// target like any other member, possibly the socialite herself.
    pub own_profile_share: f64,
    /// A write prefers relations whose last write is at least this many sessions back. A replay
    /// with that many threads then hardly ever waits.
    pub dependency_window: u64,
    /// No socialite acts twice within this many consecutive sessions of the trace (over all
    /// fragments). 0 lets her act again at once.
    ///
    /// A member acts in one session at a time, so a replay has to wait for a socialite who is
    /// busy. The most popular one then limits how many threads can be busy. BG draws another
    /// member instead. Here the generator does so, for as many sessions as may be under way.
    ///
    /// The default is twice the 256 threads that the ready specifications and plans go up to:
    /// while one session takes longer than others, as many others start. A fragment's share of
    /// the window is at most half of its members, so that small populations stay possible. The
    /// manifest has the window in effect.
    pub unique_window: u64,
}

/// The largest [`Access::unique_window`]: no data set has more members.
const UNIQUE_WINDOW_MAX: u64 = 1 << 32;

/// A distribution over members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// All members have the same weight.
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
fn default_top_k() -> u32 {
    5
}
fn default_attribute_bytes() -> u32 {
    200
}
fn default_text_bytes() -> u32 {
    64
}

impl Workload for SocialWorkload {
    const FAMILY: &'static str = "social";
    const KEYS: &'static [&'static str] = &["data", "access", "session"];
    const ACTORS: ActorWords = ActorWords { plural: "members", keys: &["data.members", "access.unique_window"] };
    type Vocabulary = Social;
    type Statistics = SocialStatistics;

    fn check(spec: &SpecOf<SocialWorkload>) -> Result<(), Wrong> {
        check_data(spec)?;
        check_access(&spec.own.access)?;
        check_mix(spec)
    }

    fn actors(&self) -> u64 {
        self.data.members
    }

    fn size(&self) -> String {
        format!("{} members", thousands(self.data.members))
    }
}

fn check_data(spec: &SpecOf<SocialWorkload>) -> Result<(), Wrong> {
    let wrong = |key: &str, message: String| Err(Wrong::new(key, message));
    let data = &spec.own.data;
    if data.members == 0 || data.members > u32::MAX as u64 {
        return wrong("data.members", format!("{} is not between 1 and {}", data.members, u32::MAX));
    }
    let members_in_fragment = data.members / spec.common.fragments as u64;
    if members_in_fragment < 1 {
        return wrong(
            "fragments",
            format!(
                "{} is more than data.members ({}); every fragment needs at least one member",
                spec.common.fragments, data.members
            ),
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
            true => ("data.confirmed_share", "confirmed friends per member are an odd number"),
            false => ("data.confirmed_share", "confirmed friends per member are not a whole number"),
        };
        let message =
            format!("{confirmed} {is}; a ring needs an even number: change it, or set data.friendships = \"uniform\"");
        return wrong(key, message);
    }
    let (confirmed, waiting) = (confirmed.ceil() as u64, data.waiting_per_member().ceil() as u64);
    let related = match data.friendships {
        Assignment::Ring => confirmed + 2 * waiting,
        // The generator draws pairs until it finds a new one, so it needs twice the room.
        Assignment::Uniform | Assignment::Zipfian => 2 * (confirmed + 2 * waiting),
    };
    // D-Zipfian assigns popular members one by one, so a fragment can be smaller than the
    // average. The generator checks this again.
    if related + 1 > members_in_fragment {
        return wrong(
            "data.friends_per_member",
            format!(
                "friends ({confirmed}) and invitations ({waiting}) to and from each member need more than \
                 {related} members in a fragment, and it has {members_in_fragment}; use fewer friends, fewer \
                 fragments or more members"
            ),
        );
    }
    if data.top_k == 0 {
        return wrong("data.top_k", "must be at least 1".into());
    }
    let resources = data.members.checked_mul(data.resources_per_member);
    let comments = resources.and_then(|r| r.checked_mul(data.comments_per_resource));
    if comments.is_none_or(|c| c > i64::MAX as u64 / 2) || resources.is_some_and(|r| r > i64::MAX as u64 / 2) {
        return wrong("data.comments_per_resource", "more resources or comments than there are ids; use fewer".into());
    }
    Ok(())
}

fn check_access(access: &Access) -> Result<(), Wrong> {
    let wrong = |key: &str, message: String| Err(Wrong::new(key, message));
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
            "{} is above the maximum ({UNIQUE_WINDOW_MAX}); use about twice the number of threads",
            access.unique_window
        );
        return wrong("access.unique_window", message);
    }
    Ok(())
}

/// Checks the sessions that are composed here, and the names of the mix.
fn check_mix(spec: &SpecOf<SocialWorkload>) -> Result<(), Wrong> {
    let wrong = |key: &str, message: String| Err(Wrong::new(key, message));
    for (name, composed) in &spec.own.session {
        let key = format!("session.{name}");
        let name_fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || !name.chars().all(name_fits) {
            return wrong(&key, "is not a name of letters, digits, '-' and '_'".into());
        }
        if built_in_steps(name).is_some() {
            return wrong(&key, "is the name of an action or of a session of BG; use another name".into());
        }
        if composed.steps.is_empty() || composed.steps.len() > STEPS_MAX {
            return wrong(&key, format!("has {} steps, not 1 to {STEPS_MAX}", composed.steps.len()));
        }
    }
    for (name, share) in &spec.common.mix {
        let key = format!("mix.{name}");
        let Some(steps) = spec.own.steps(name) else {
            let sessions: Vec<&str> = built_in().iter().map(|(name, _)| *name).collect();
            let actions: Vec<&str> = Action::ALL.iter().map(|a| a.name()).collect();
            return wrong(
                &key,
                format!(
                    "is not a kind of session; use an action ({}), a session of BG ({}), or define [session.NAME]",
                    actions.join(", "),
                    sessions.join(", ")
                ),
            );
        };
        if *share == 0.0 {
            continue;
        }
        let needs = |role: fn(Role) -> bool| steps.iter().any(|step| role(step.role));
        if spec.own.data.resources_per_member == 0 && needs(Role::is_resource) {
            return wrong(&key, "there are no resources; set data.resources_per_member".into());
        }
        if spec.own.data.members == 1 && needs(|role| role == Role::Stranger) {
            return wrong(&key, "there is only one member; set data.members".into());
        }
    }
    Ok(())
}

impl SocialWorkload {
    /// The steps of a kind of session; None if no kind has this name.
    pub fn steps(&self, name: &str) -> Option<Vec<Step>> {
        built_in_steps(name).or_else(|| self.session.get(name).map(|composed| composed.steps.clone()))
    }
}

impl SpecOf<SocialWorkload> {
    /// The kinds of sessions with a share above 0, in the order in which files number them.
    pub fn session_kinds(&self) -> Vec<SessionKind> {
        let kinds = self.common.kinds().into_iter();
        kinds
            .filter_map(|(name, share)| {
                Some(SessionKind { name: name.to_string(), share, steps: self.own.steps(name)? })
            })
            .collect()
    }
}
