use super::*;
use crate::core::generator::Sessions as _;
use crate::social::activity::Activity;
use schemas::share::sessions_by_fragment;
use schemas::social::session::Role;
use schemas::spec::{Delay, DelayDistribution, SpecOf};
use schemas::workload::social::SocialWorkload;

const MEMBERS: usize = 2_000;
const SESSIONS: u64 = 1_000_000;

/// Single actions, BG's sessions and a composed one. No-operations and early ends must not change
/// how often members are drawn.
fn spec(fragments: u32) -> SpecOf<SocialWorkload> {
    let text = format!(
        "name = 'chi'\nsessions = {SESSIONS}\nfragments = {fragments}\n\
         [data]\nmembers = {MEMBERS}\nfriends_per_member = 4\npending_per_member = 2\nresources_per_member = 1\n\
         [mix]\nlist_friends = 40\nview_comments = 10\ninvite_friend = 4\naccept_friend_request = 4\n\
         thaw_friendship = 2\npost_comment_session = 10\nview_friend_profile_session = 5\n\
         invite_friend_session = 5\naccept_friend_request_session = 5\nthaw_friendship_session = 5\nbrowse = 10\n\
         [session.browse]\nsteps = ['list_friends inviter', 'view_profile member', 'view_comments wall_resource']\n"
    );
    SpecOf::<SocialWorkload>::parse(&text, "chi.toml").unwrap()
}

/// The value that chi-square exceeds by chance once in a thousand times
/// (Wilson and Hilferty's approximation).
fn critical(degrees: f64) -> f64 {
    let spread = 2.0 / (9.0 * degrees);
    degrees * (1.0 - spread + 3.0902 * spread.sqrt()).powi(3)
}

fn chi_square(counts: &[u64], probabilities: &[f64]) -> f64 {
    let total = counts.iter().sum::<u64>() as f64;
    counts.iter().zip(probabilities).map(|(n, p)| (*n as f64 - p * total).powi(2) / (p * total)).sum()
}

/// For each member: how often they are the socialite, how often a session draws them as a member,
/// and how often a session draws a resource of theirs.
fn references(spec: &SpecOf<SocialWorkload>) -> [Vec<u64>; 3] {
    let population = Population::new(spec).unwrap();
    let top = TopFifth::new(&population);
    let kinds = spec.session_kinds();
    let (mut socialites, mut targets, mut owners) = (vec![0; MEMBERS], vec![0; MEMBERS], vec![0; MEMBERS]);
    for (fragment, count) in (0..spec.common.fragments).zip(sessions_by_fragment(&population.weights, SESSIONS)) {
        let mut sessions = Sessions::new(spec, &population, &top, fragment);
        for _ in 0..count {
            let mut has_target = false;
            let drawn = sessions.try_next(|row| {
                if row.step == 0 {
                    socialites[row.operation.socialite as usize] += 1;
                }
                match kinds[row.kind as usize].steps[row.step as usize].role {
                    // A session draws the member once, however many steps target them.
                    Role::Member if !has_target => {
                        targets[row.operation.target as usize] += 1;
                        has_target = true;
                    }
                    Role::Resource => owners[row.operation.target as usize] += 1,
                    _ => {}
                }
            });
            assert_eq!(drawn, Drawn::Session);
        }
    }
    [socialites, targets, owners]
}

/// With any number of fragments, the sessions of all fragments together draw members by the one
/// global distribution. Targets always do, and socialites do when they may act again at once.
#[test]
fn the_union_of_all_fragments_follows_the_global_distribution() {
    let probabilities = Population::new(&spec(1)).unwrap().probabilities();
    let limit = critical(MEMBERS as f64 - 1.0);
    for (fragments, unique_window) in [(1, 0), (4, 0), (16, 0), (1, 512), (4, 100)] {
        let mut spec = spec(fragments);
        spec.own.access.unique_window = unique_window;
        assert_eq!(Population::new(&spec).unwrap().probabilities(), probabilities);
        for (who, counts) in ["socialites", "targets", "owners"].into_iter().zip(references(&spec)) {
            assert!(counts.iter().sum::<u64>() > 80_000);
            let found = chi_square(&counts, &probabilities);
            let follows = who != "socialites" || unique_window == 0;
            assert_eq!(
                found < limit,
                follows,
                "{fragments} fragments, window {unique_window}: chi-square of {who} is {found}, the limit {limit}"
            );
        }
    }
}

/// The test above would notice another exponent, with any number of fragments.
#[test]
fn chi_square_tells_another_distribution_apart() {
    let probabilities = Population::new(&spec(1)).unwrap().probabilities();
    for fragments in [1, 16] {
        let mut spec = spec(fragments);
        (spec.own.access.theta, spec.own.access.unique_window) = (0.3, 0);
        let [socialites, targets, _] = references(&spec);
        for counts in [socialites, targets] {
            assert!(chi_square(&counts, &probabilities) > critical(MEMBERS as f64 - 1.0));
        }
    }
}

/// The window changes no draw except that of socialites. In a mix whose sessions only look at
/// others, the targets stay the same.
#[test]
fn the_window_changes_nothing_but_who_acts() {
    let targets = |unique_window| {
        let mut spec = spec(1);
        spec.common.mix = [("list_friends".to_string(), 1.0), ("view_comments".to_string(), 1.0)].into();
        spec.own.access.unique_window = unique_window;
        let population = Population::new(&spec).unwrap();
        let mut sessions = Sessions::new(&spec, &population, &TopFifth::new(&population), 0);
        let (mut targets, mut socialites) = (Vec::new(), Vec::new());
        for _ in 0..20_000 {
            let drawn = sessions.try_next(|row| {
                targets.push((row.operation.action, row.operation.target));
                socialites.push(row.operation.socialite);
            });
            assert_eq!(drawn, Drawn::Session);
        }
        (targets, socialites)
    };
    let (without, with) = (targets(0), targets(512));
    assert_eq!(without.0, with.0);
    assert_ne!(without.1, with.1);
}

/// Members act as often as the model expects, with any theta and window.
#[test]
fn socialites_act_as_often_as_expected() {
    for (theta, fragments, unique_window) in
        [(0.27, 1, 512), (0.27, 4, 512), (0.01, 1, 256), (0.9, 1, 1_000), (0.5, 2, 16), (0.27, 1, 0), (0.27, 1, 5_000)]
    {
        let mut spec = spec(fragments);
        (spec.own.access.theta, spec.own.access.unique_window) = (theta, unique_window);
        let population = Population::new(&spec).unwrap();
        let top = TopFifth::new(&population);
        let activity = Activity::new(&spec, &population, &top);
        let [socialites, ..] = references(&spec);
        let all = socialites.iter().sum::<u64>() as f64;
        let most = *socialites.iter().max().unwrap() as f64;
        let theirs: u64 = (0..).zip(&socialites).filter(|(member, _)| top.has(*member)).map(|(_, n)| n).sum();
        let case = format!("theta {theta}, {fragments} fragments, window {unique_window}");
        // By chance, the most active of many nearly equal members acts more often than the model
        // expects of any. The bound is four standard deviations.
        let spread = 4.0 * (activity.most_active * all).sqrt();
        let difference = most - activity.most_active * all;
        assert!(difference.abs() < spread, "{case}: {most} for {}", activity.most_active * all);
        let difference = theirs as f64 / all - activity.top_fifth;
        assert!(difference.abs() < 0.003, "{case}: {difference} from {}", activity.top_fifth);
    }
}

/// The operations are the same with any waits.
#[test]
fn waits_change_nothing_but_waits() {
    let rows = |think_us, inter_arrival_us| {
        let delay = |mean_us| Delay { mean_us, distribution: DelayDistribution::Exponential };
        let mut spec = spec(1);
        spec.common.think_time = delay(think_us);
        spec.common.inter_arrival_time = delay(inter_arrival_us);
        let population = Population::new(&spec).unwrap();
        let mut sessions = Sessions::new(&spec, &population, &TopFifth::new(&population), 0);
        let mut rows = Vec::new();
        for _ in 0..20_000 {
            assert_eq!(sessions.try_next(|row| rows.push(*row)), Drawn::Session);
        }
        rows
    };
    let (plain, think, both) = (rows(0, 0), rows(50, 0), rows(50, 70));
    let without: Vec<TraceRow> = both.iter().map(|row| TraceRow { think_us: 0, ..*row }).collect();
    assert!(plain == without, "waits changed who does what");
    assert!(think.iter().all(|row| row.step > 0 || row.think_us == 0));
    let is_same = |(a, b): (&TraceRow, &TraceRow)| a.step == 0 || a.think_us == b.think_us;
    assert!(think.iter().zip(&both).all(is_same), "time between sessions changed think times");
}
