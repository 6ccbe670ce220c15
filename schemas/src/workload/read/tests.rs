//! Tests specifications: keys, settings, ids.

use super::*;
use crate::workload::social::{Distribution, SocialWorkload};

fn social(text: &str) -> SocialWorkload {
    Spec::parse(text, "t.toml").unwrap().workload().unwrap()
}

const GOOD: &str =
    "name = \"t\"\nsessions = 10\n[data]\nmembers = 100\nfriends_per_member = 10\n[mix]\nview_profile = 1\n";

fn check(change: &str, to: &str, expect: &str) {
    let text = GOOD.replace(change, to);
    assert_ne!(text, GOOD, "the case changes nothing");
    let error = Spec::parse(&text, "t.toml").unwrap_err().to_string();
    assert!(error.starts_with("t.toml: ") && error.contains(expect), "{error:?} lacks {expect:?}");
}

#[test]
fn an_sla_is_text_and_decides_nothing_in_the_trace() {
    let plain = Spec::parse(GOOD, "t.toml").unwrap();
    let text = GOOD.replace("sessions = 10\n", "sessions = 10\nsla = \"99% < 5ms, 20s\"\n");
    let spec = Spec::parse(&text, "t.toml").unwrap();
    assert_eq!(spec.sla, Some("99% < 5ms, 20s".parse().unwrap()));
    assert_eq!(spec.workload_id(), plain.workload_id());
    let json = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<Spec>(&json).unwrap(), spec, "{json}");
}

#[test]
fn wrong_keys_and_values_are_named() {
    check("members = 100", "membres = 100", "membres");
    check("sessions = 10\n", "sessions = 10\nsla = \"fast\"\n", "write it like");
    check("members = 100", "members = \"many\"", "members");
    check("members = 100", "members = 0", "data.members");
    check("members = 100", "members = 10", "data.friends_per_member: friends (10)");
    check("friends_per_member = 10", "friends_per_member = 3", "data.friends_per_member: 3 is odd");
    check(
        "friends_per_member = 10",
        "friends_per_member = 10\nconfirmed_share = 0.9",
        "9 confirmed friends per member are an odd number",
    );
    check(
        "friends_per_member = 10",
        "friends_per_member = 10\nconfirmed_share = 0.85",
        "8.5 confirmed friends per member are not a whole",
    );
    check("friends_per_member = 10", "friends_per_member = 10\nconfirmed_share = 2", "data.confirmed_share: 2 is not");
    check(
        "friends_per_member = 10",
        "friends_per_member = 60\nfriendships = \"uniform\"",
        "need more than 120 members",
    );
    check(
        "sessions = 10",
        "sessions = 10\nfragment_weights = [1, 2]",
        "fragment_weights: the number of weights is 2, fragments is 1",
    );
    check("sessions = 10", "sessions = 10\nfragment_weights = [0]", "fragment_weights: 0 is not");
    check("[mix]", "[think_time]\nmean_ms = 3\n[mix]", "mean_ms");
    check("view_profile = 1", "view_profile = 1\nbrowse = 1", "mix.browse: is not a kind of session");
    check("view_profile = 1", "delete_comment_session = 1", "data.resources_per_member");
    let composed = |steps: &str| format!("view_profile = 1\n[session.browse]\nsteps = {steps}");
    check("view_profile = 1", &composed("[]"), "session.browse: has 0 steps");
    check("view_profile = 1", &composed("[\"invite_friend me\"]"), "invite_friend cannot be about");
    check(
        "view_profile = 1",
        "view_profile = 1\n[session.view_profile]\nsteps = [\"view_profile me\"]",
        "use another name",
    );
    check("view_profile = 1", "view_profil = 1", "view_profil");
    check("view_profile = 1", "view_profile = 0", "mix: is empty");
    check("view_profile = 1", "view_profile = -1", "mix.view_profile: -1");
    check("view_profile = 1", "view_profile = 1\nview_comments = 1", "data.resources_per_member");
    check("sessions = 10", "sessions = 0", "sessions: must be at least 1");
    check("name = \"t\"", "name = \"../t\"", "name: ");
    check("sessions = 10", "sessions = 10\nfragments = 0", "fragments: 0");
    check("[mix]", "[access]\ntheta = -0.1\n[mix]", "access.theta");
    check(
        "[mix]",
        "[access]\nunique_window = 4_294_967_297\n[mix]",
        "access.unique_window: 4294967297 is above the maximum",
    );
}

#[test]
fn sessions_are_built_in_or_composed() {
    let text = GOOD.replace(
        "view_profile = 1",
        "view_profile = 3\nbrowse = 1\nthaw_friendship_session = 0\n[session.browse]\n\
         steps = [\"list_friends me\", \"view_profile friend\"]",
    );
    let spec = Spec::parse(&text, "t.toml").unwrap();
    let kinds = spec.of::<SocialWorkload>().unwrap().session_kinds();
    let kinds: Vec<(String, usize)> = kinds.into_iter().map(|k| (k.name, k.steps.len())).collect();
    assert_eq!(kinds, [("browse".to_string(), 2), ("view_profile".to_string(), 1)]);
    assert_eq!(Spec::parse(&spec.to_toml().unwrap(), "again.toml").unwrap(), spec);
    // Uniform assignment allows a mean that is not a whole number.
    let uniform = text
        .replace("friends_per_member = 10", "friends_per_member = 7\nfriendships = \"uniform\"\nconfirmed_share = 0.9");
    let data = social(&uniform).data;
    assert_eq!((data.confirmed_per_member(), data.waiting_per_member() > 0.699), (6.3, true));
}

/// BG has mixes of writes alone, such as its `UpdateOnly`.
#[test]
fn a_mix_may_be_of_writes_alone() {
    let spec = Spec::parse(&GOOD.replace("view_profile = 1", "invite_friend = 1"), "t.toml").unwrap();
    assert_eq!(spec.kinds().len(), 1);
}

#[test]
fn the_window_of_unique_actors_has_a_default_and_a_largest() {
    let window = |to: &str| social(&GOOD.replace("[mix]", to)).access.unique_window;
    assert_eq!(window("[mix]"), 512);
    assert_eq!(window("[access]\nunique_window = 0\n[mix]"), 0);
    // A window above the number of members is valid: the generator limits it.
    assert_eq!(window("[access]\nunique_window = 4_294_967_296\n[mix]"), 1 << 32);
}

#[test]
fn settings_replace_keys() {
    let set = |s: &str| Spec::parse_with(GOOD, "t.toml", &[s.to_string()]);
    assert_eq!(set("data.members=50").unwrap().workload::<SocialWorkload>().unwrap().data.members, 50);
    assert_eq!(
        set("access.distribution=uniform").unwrap().workload::<SocialWorkload>().unwrap().access.distribution,
        Distribution::Uniform
    );
    assert!(set("data.membres=50").unwrap_err().to_string().contains("membres"));
    let unknown = set("fragmnts=4").unwrap_err().to_string();
    assert!(
        unknown.starts_with("t.toml: --set fragmnts=4: fragmnts: unknown key; a workload of the family social has")
    );
    let family = set("family=kw").unwrap_err().to_string();
    let all = "social, kv, economy, consbench, sql, tpcc";
    assert_eq!(family, format!("t.toml: --set family=kw: family: \"kw\" is unknown; use one of {all}"));
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

/// Without `family`, the error only listed the keys of the family that a specification has by default.
#[test]
fn keys_of_another_family_are_told_by_its_name() {
    let text = "name = 't'\nsessions = 5\n[data]\nrecords = 9\n[mix]\nread = 1\n";
    for settings in [vec![], vec!["seed=3".to_string()]] {
        let error = Spec::parse_with(text, "t.toml", &settings).unwrap_err().to_string();
        assert!(error.contains("`records`") && error.contains("set family = \"kv\""), "{error}");
    }
    let error = Spec::parse(&text.replace("records", "recrods"), "t.toml").unwrap_err().to_string();
    assert!(!error.contains("set family"), "{error}");
}

/// Only some families have transactions.
#[test]
fn a_section_of_another_family_is_refused_by_name() {
    let text = GOOD.replace("[mix]", "[transactions]\nabort_share = 0.1\n[mix]");
    let error = Spec::parse(&text, "t.toml").unwrap_err().to_string();
    assert!(error.contains("t.toml: transactions: unknown key; a workload of the family social"), "{error}");
}
