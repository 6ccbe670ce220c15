//! Kinds of sessions: BG's eight (bg-2013, section D), single actions, and those that a
//! specification composes.
//!
//! A session is a list of steps. A step is an action and its role: the member or resource that
//! the action is about. The generator looks for that member or resource when it comes to the
//! step. If there is none (no friend, no invitation, no comment), the session ends before the
//! step.
//!
//! ```
//! use schemas::social::Action;
//! use schemas::social::session::{Role, Step};
//!
//! let step: Step = "list_friends friend".parse().unwrap();
//! assert_eq!(step, Step { action: Action::ListFriends, role: Role::Friend });
//! assert_eq!(step.to_string(), "list_friends friend");
//! assert!("list_friends inviter2".parse::<Step>().is_err());
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Action;

/// The member or resource that a step is about. It stays the same from step to step of a session.
/// Only a write takes another one, if the relation that it needs no longer exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The socialite herself.
    Me,
    /// A member drawn by the access distribution, possibly the socialite herself.
    Member,
    /// One of her friends, at random.
    Friend,
    /// A member without a relation to her: neither a friend, nor invited by her, nor inviting
    /// her. The generator tries a few draws of the access distribution to find one.
    Stranger,
    /// A member whose invitation to her is pending.
    Inviter,
    /// A resource owned by a member drawn by the access distribution.
    Resource,
    /// One of the top K resources on the wall of this session's [`Role::Member`].
    WallResource,
    /// One of her own resources. A comment is deleted from the resource that the session is
    /// already about, or else from any of hers that has comments.
    OwnResource,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 8] = [
        Role::Me,
        Role::Member,
        Role::Friend,
        Role::Stranger,
        Role::Inviter,
        Role::Resource,
        Role::WallResource,
        Role::OwnResource,
    ];

    /// The word in a specification.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Me => "me",
            Role::Member => "member",
            Role::Friend => "friend",
            Role::Stranger => "stranger",
            Role::Inviter => "inviter",
            Role::Resource => "resource",
            Role::WallResource => "wall_resource",
            Role::OwnResource => "own_resource",
        }
    }

    /// Whether it is a resource; otherwise it is a member.
    pub const fn is_resource(self) -> bool {
        matches!(self, Role::Resource | Role::WallResource | Role::OwnResource)
    }
}

/// An action and what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// The action.
    pub action: Action,
    /// The member or resource that it is about.
    pub role: Role,
}

impl Step {
    const fn new(action: Action, role: Role) -> Step {
        Step { action, role }
    }

    /// The roles that an action can have. The first one is the default, also for a single action.
    pub const fn roles(action: Action) -> &'static [Role] {
        match action {
            Action::ViewProfile | Action::ListFriends | Action::ViewTopKResources => {
                &[Role::Member, Role::Me, Role::Friend, Role::Stranger, Role::Inviter]
            }
            Action::ViewFriendRequests => &[Role::Me],
            Action::InviteFriend => &[Role::Stranger],
            Action::AcceptFriendRequest | Action::RejectFriendRequest => &[Role::Inviter],
            Action::ThawFriendship => &[Role::Friend],
            Action::ViewComments | Action::PostComment => &[Role::Resource, Role::WallResource, Role::OwnResource],
            Action::DeleteComment => &[Role::OwnResource],
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.action.name(), self.role.name())
    }
}

/// A text that is not a valid step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("step {text:?}: {message}")]
pub struct StepError {
    text: String,
    message: String,
}

impl FromStr for Step {
    type Err = StepError;

    fn from_str(text: &str) -> Result<Step, StepError> {
        let wrong = |message: String| StepError { text: text.into(), message };
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let action = Action::from_name(name).ok_or_else(|| {
            let names: Vec<&str> = Action::ALL.iter().map(|a| a.name()).collect();
            wrong(format!("unknown action {name:?}; use one of {}", names.join(", ")))
        })?;
        let roles = Step::roles(action);
        let role = match words.next() {
            None => roles[0],
            Some(word) => roles.iter().copied().find(|r| r.name() == word).ok_or_else(|| {
                let names: Vec<&str> = roles.iter().map(|r| r.name()).collect();
                wrong(format!("{name} cannot be about {word:?}; use one of {}", names.join(", ")))
            })?,
        };
        match words.next() {
            None => Ok(Step { action, role }),
            Some(_) => Err(wrong("has more than an action and a role".into())),
        }
    }
}

impl Serialize for Step {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Step, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A kind of session and its share of the sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionKind {
    /// Its name: that of an action, of one of BG's sessions, or the specification's own.
    pub name: String,
    /// Its share of the sessions; only proportions count.
    pub share: f64,
    /// Its steps, in order.
    pub steps: Vec<Step>,
}

/// BG's eight sessions: name and steps.
pub fn built_in() -> Vec<(&'static str, Vec<Step>)> {
    use Action::*;
    use Role::*;
    let self_first = [Step::new(ViewProfile, Me), Step::new(ViewTopKResources, Me)];
    let session = |rest: &[(Action, Role)]| -> Vec<Step> {
        self_first.into_iter().chain(rest.iter().map(|(action, role)| Step::new(*action, *role))).collect()
    };
    let answer = |action| {
        session(&[
            (ListFriends, Me),
            (ViewFriendRequests, Me),
            (action, Inviter),
            (ViewFriendRequests, Me),
            (ListFriends, Me),
        ])
    };
    vec![
        ("view_self_profile_session", session(&[])),
        (
            "view_friend_profile_session",
            session(&[(ListFriends, Me), (ViewProfile, Friend), (ViewTopKResources, Friend)]),
        ),
        (
            "post_comment_session",
            session(&[
                (ViewProfile, Member),
                (ViewTopKResources, Member),
                (ViewComments, WallResource),
                (PostComment, WallResource),
                (ViewComments, WallResource),
            ]),
        ),
        (
            "delete_comment_session",
            session(&[(ViewComments, OwnResource), (DeleteComment, OwnResource), (ViewComments, OwnResource)]),
        ),
        ("invite_friend_session", session(&[(ListFriends, Me), (InviteFriend, Stranger), (ViewFriendRequests, Me)])),
        ("accept_friend_request_session", answer(AcceptFriendRequest)),
        ("reject_friend_request_session", answer(RejectFriendRequest)),
        ("thaw_friendship_session", session(&[(ListFriends, Me), (ThawFriendship, Friend), (ListFriends, Me)])),
    ]
}

/// The steps of a built-in kind: a single action or one of BG's sessions.
pub fn built_in_steps(name: &str) -> Option<Vec<Step>> {
    if let Some(action) = Action::from_name(name) {
        return Some(vec![Step::new(action, Step::roles(action)[0])]);
    }
    built_in().into_iter().find(|(known, _)| *known == name).map(|(_, steps)| steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sequences of bg-2013 section D, in its abbreviations.
    #[test]
    fn the_eight_sessions_are_those_of_the_paper() {
        let short = |action| match action {
            Action::ViewProfile => "VP",
            Action::ListFriends => "LF",
            Action::ViewFriendRequests => "VFR",
            Action::InviteFriend => "IF",
            Action::AcceptFriendRequest => "AFR",
            Action::RejectFriendRequest => "RFR",
            Action::ThawFriendship => "TF",
            Action::ViewTopKResources => "VTR",
            Action::ViewComments => "VCR",
            Action::PostComment => "PCR",
            Action::DeleteComment => "DCR",
        };
        let sessions: Vec<String> = built_in()
            .into_iter()
            .map(|(_, steps)| {
                let steps: Vec<String> = steps
                    .iter()
                    .map(|step| match step.role {
                        Role::Me => short(step.action).to_string(),
                        role => format!("{}({})", short(step.action), role.name()),
                    })
                    .collect();
                steps.join(" ")
            })
            .collect();
        assert_eq!(
            sessions,
            [
                "VP VTR",
                "VP VTR LF VP(friend) VTR(friend)",
                "VP VTR VP(member) VTR(member) VCR(wall_resource) PCR(wall_resource) VCR(wall_resource)",
                "VP VTR VCR(own_resource) DCR(own_resource) VCR(own_resource)",
                "VP VTR LF IF(stranger) VFR",
                "VP VTR LF VFR AFR(inviter) VFR LF",
                "VP VTR LF VFR RFR(inviter) VFR LF",
                "VP VTR LF TF(friend) LF",
            ]
        );
    }

    #[test]
    fn steps_round_trip_and_wrong_ones_are_named() {
        for action in Action::ALL {
            for role in Step::roles(action) {
                let step = Step::new(action, *role);
                assert_eq!(step.to_string().parse(), Ok(step));
                assert_eq!(action.targets_resource(), role.is_resource(), "{step}");
            }
        }
        let check = |text: &str, expect: &str| {
            let error = text.parse::<Step>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains(expect), "{error}");
        };
        check("look me", "unknown action \"look\"; use one of view_profile, ");
        check("invite_friend me", "invite_friend cannot be about \"me\"; use one of stranger");
        check("view_profile me twice", "more than an action and a role");
        assert_eq!("view_profile".parse(), Ok(Step::new(Action::ViewProfile, Role::Member)));
    }
}
