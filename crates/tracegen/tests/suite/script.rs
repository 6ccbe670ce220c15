//! The rules for the sessions of a trace. They follow bg-2013 section D and the meaning of the
//! roles, not the code of the generator.

use std::collections::BTreeMap;

use crate::social;
use schemas::social::TraceRow;
use schemas::spec::Spec;

use crate::model::Model;

/// BG's sessions.
const SESSIONS: [(&str, &str); 8] = [
    ("view_self_profile_session", "view_profile me, view_top_k_resources me"),
    (
        "view_friend_profile_session",
        "view_profile me, view_top_k_resources me, list_friends me, view_profile friend, view_top_k_resources friend",
    ),
    (
        "post_comment_session",
        "view_profile me, view_top_k_resources me, view_profile member, view_top_k_resources member, \
         view_comments wall_resource, post_comment wall_resource, view_comments wall_resource",
    ),
    (
        "delete_comment_session",
        "view_profile me, view_top_k_resources me, view_comments own_resource, delete_comment own_resource, \
         view_comments own_resource",
    ),
    (
        "invite_friend_session",
        "view_profile me, view_top_k_resources me, list_friends me, invite_friend stranger, view_friend_requests me",
    ),
    (
        "accept_friend_request_session",
        "view_profile me, view_top_k_resources me, list_friends me, view_friend_requests me, \
         accept_friend_request inviter, view_friend_requests me, list_friends me",
    ),
    (
        "reject_friend_request_session",
        "view_profile me, view_top_k_resources me, list_friends me, view_friend_requests me, \
         reject_friend_request inviter, view_friend_requests me, list_friends me",
    ),
    (
        "thaw_friendship_session",
        "view_profile me, view_top_k_resources me, list_friends me, thaw_friendship friend, list_friends me",
    ),
];

/// The role that a single action targets.
const SINGLE: [(&str, &str); 11] = [
    ("view_profile", "member"),
    ("list_friends", "member"),
    ("view_friend_requests", "me"),
    ("view_top_k_resources", "member"),
    ("view_comments", "resource"),
    ("invite_friend", "stranger"),
    ("accept_friend_request", "inviter"),
    ("reject_friend_request", "inviter"),
    ("thaw_friendship", "friend"),
    ("post_comment", "resource"),
    ("delete_comment", "own_resource"),
];

/// A step: the action and the role.
type Step = (String, String);

/// The member or resource of each role in a session.
type Cast = BTreeMap<String, u64>;

/// The kinds of sessions of a specification, by name.
pub struct Script {
    kinds: Vec<(String, Vec<Step>)>,
    top_k: usize,
}

/// The totals over the sessions of a trace.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub sessions: BTreeMap<String, u64>,
    pub ended_early: BTreeMap<String, u64>,
    pub operations: BTreeMap<String, u64>,
    pub noops: u64,
}

impl Script {
    pub fn new(spec: &Spec) -> Script {
        let step = |text: &str| {
            let (action, role) = text.trim().split_once(' ').unwrap();
            (action.to_string(), role.to_string())
        };
        let steps = |name: &str| -> Vec<Step> {
            let single = SINGLE.iter().find(|(action, _)| *action == name);
            let built_in = SESSIONS.iter().find(|(session, _)| *session == name);
            match (single, built_in) {
                (Some((action, role)), _) => vec![(action.to_string(), role.to_string())],
                (_, Some((_, steps))) => steps.split(", ").map(step).collect(),
                _ => social(spec).session[name].steps.iter().map(|s| step(&s.to_string())).collect(),
            }
        };
        let wanted = spec.mix.iter().filter(|(_, share)| **share > 0.0);
        let kinds = wanted.map(|(name, _)| (name.clone(), steps(name))).collect();
        Script { kinds, top_k: social(spec).data.top_k as usize }
    }

    /// Replays a session. It must be one of its kind, and must not end before a step that is possible.
    pub fn replay(&self, rows: &[TraceRow], session: u64, model: &mut Model, tally: &mut Tally) {
        let first = &rows[0];
        let me = first.operation.socialite;
        let (name, steps) = &self.kinds[first.kind as usize];
        let mut cast = Cast::from([("me".to_string(), me)]);

        let in_vain = self.kinds.iter().filter(|(_, steps)| self.may_be_impossible(&steps[0], &cast, model)).count();
        // Each socialite drawn before this one who could do nothing leaves one no-operation of each kind.
        let hers = first.noops as usize % self.kinds.len();
        assert!(hers <= in_vain, "{first:?}: only {in_vain} kinds may be impossible");
        let others = first.noops as usize - hers;
        assert!(others == 0 || !self.can_always_do_something(), "{first:?}: some kind is always possible");
        tally.noops += first.noops as u64;

        assert!(rows.len() <= steps.len(), "{name}: {rows:?}");
        for (index, (row, step)) in rows.iter().zip(steps).enumerate() {
            let found = (row.session, row.step as usize, row.kind, row.operation.socialite, row.due_us);
            assert_eq!(found, (session, index, first.kind, me, None));
            assert!(index == 0 || row.noops == 0, "{row:?}");
            assert_eq!(row.operation.action.name(), step.0, "{name}: {row:?}");
            self.check_target(row, step, &mut cast, model);
            model.replay(row);
            *tally.operations.entry(step.0.clone()).or_default() += 1;
        }
        *tally.sessions.entry(name.clone()).or_default() += 1;
        if let Some(next) = steps.get(rows.len()) {
            assert!(self.may_be_impossible(next, &cast, model), "{name} ended before {next:?}: {rows:?}");
            *tally.ended_early.entry(name.clone()).or_default() += 1;
        }
    }

    /// Checks that the target fits the role, and that it is still the same where the role is bound.
    fn check_target(&self, row: &TraceRow, step: &Step, cast: &mut Cast, model: &Model) {
        let (me, target) = (row.operation.socialite, row.operation.target);
        let (action, role) = (step.0.as_str(), step.1.as_str());
        let still_fits = |target: u64| match action {
            "invite_friend" => model.are_strangers(me, target),
            "accept_friend_request" | "reject_friend_request" => model.is_invited(target, me),
            "thaw_friendship" => model.are_friends(me, target),
            _ => true,
        };
        if let Some(bound) = cast.get(role).filter(|bound| still_fits(**bound)) {
            assert_eq!(target, *bound, "{role} has changed: {row:?}");
            return;
        }
        let fits = match role {
            "member" => model.members().any(|member| member == target),
            "friend" => model.are_friends(me, target),
            "stranger" => model.are_strangers(me, target),
            "inviter" => model.is_invited(target, me),
            "resource" => model.resource(target).is_some(),
            "own_resource" => model.resource(target).is_some_and(|(owner, _)| owner == me),
            "wall_resource" => {
                let (_, wall) = model.resource(target).unwrap();
                let highest = model.wall(wall).into_iter().rev().take(self.top_k);
                *cast.entry("member".into()).or_insert(wall) == wall && highest.into_iter().any(|r| r == target)
            }
            role => panic!("there is no role {role}"),
        };
        assert!(fits, "no {role}: {row:?}");
        cast.insert(role.to_string(), target);
    }

    /// Whether there is a kind of session that every socialite can begin at any time.
    fn can_always_do_something(&self) -> bool {
        let always = |(action, role): &Step| {
            ["me", "member", "resource", "own_resource"].contains(&role.as_str()) && action != "delete_comment"
        };
        self.kinds.iter().any(|(_, steps)| always(&steps[0]))
    }

    /// Whether the step may be impossible. The answer is exact except for strangers: the generator
    /// looks for them by drawing, and finds one when the socialite knows few members.
    fn may_be_impossible(&self, (action, role): &Step, cast: &Cast, model: &Model) -> bool {
        let me = cast["me"];
        let is_write = !action.starts_with("view") && !action.starts_with("list");
        match (role.as_str(), cast.get(role)) {
            ("own_resource", Some(bound)) if action == "delete_comment" => model.comment_count(|r| r == *bound) == 0,
            ("own_resource", None) if action == "delete_comment" => {
                model.comment_count(|r| model.resource(r).is_some_and(|(owner, _)| owner == me)) == 0
            }
            (_, Some(_)) if !is_write => false,
            ("friend", _) => model.friend_count(me) == 0,
            ("inviter", _) => model.pending_count(me) == 0,
            ("stranger", _) => {
                let known = model.members().filter(|member| !model.are_strangers(me, *member)).count();
                known * 16 > model.members().count()
            }
            ("wall_resource", None) => match cast.get("member") {
                Some(member) => model.wall(*member).is_empty(),
                None => model.members().any(|member| model.wall(member).is_empty()),
            },
            _ => false,
        }
    }
}
