use std::cell::Cell;

use schemas::plan::Limit;

use super::*;
use crate::run::testing::trial;
use crate::search::MOST_SAMPLES;

const LIMITS: Limits = Limits { first_load: 1, max_load: 64, resolution: 0.05, noise: 0.05 };

/// Rates a store given as (T, is final) -> (throughput, ruling). Also returns each experiment's T
/// and whether it was a final one.
fn check(store: impl Fn(u32, bool) -> (f64, Ruling)) -> (Rating, Rating, Vec<(u32, bool)>) {
    let mut ran = Vec::new();
    let mut run = |threads: u32, purpose: &Purpose| {
        let is_final = *purpose != Purpose::Search;
        ran.push((threads, is_final));
        let (throughput_per_s, ruling) = store(threads, is_final);
        Ok(trial(ran.len() as u32, threads, throughput_per_s, ruling, purpose.clone()))
    };
    let mut rater = Rater::new(&mut run, LIMITS, Unit::Threads);
    let searched = rater.search(Method::Heuristic, Wanted::Both).unwrap();
    let Ratings { soar, socialites, .. } = rater.confirm(&searched).unwrap();
    (soar.unwrap(), socialites.unwrap(), ran)
}

/// A final experiment that is as long as three of the search counts for three of them.
#[test]
fn a_final_experiment_counts_for_as_many_as_it_is_long() {
    let of = |number: u32, purpose: Purpose, seconds: f64| {
        let trial = trial(number, 4, 1000.0, Ruling::Pass, purpose);
        Trial { limit: Limit::DurationS(seconds), ..trial }
    };
    let mut run = |_: u32, _: &Purpose| unreachable!("nothing is run");
    let mut rater = Rater::new(&mut run, LIMITS, Unit::Threads);
    (1..=3).for_each(|number| rater.keep(&of(number, Purpose::Search, 0.1)));
    assert_eq!(rater.final_length(4), usize::MAX, "without one the search stands for itself");
    for (seconds, expect) in [(0.3, 3), (0.1, 1), (1.0, 10)] {
        rater.finals.insert(4, of(4, Purpose::Final(String::new()), seconds));
        assert_eq!(rater.final_length(4), expect);
    }
}

fn ends(rating: &Rating) -> (f64, f64) {
    let interval = rating.interval.as_ref().expect("an interval");
    (interval.low, interval.high)
}

fn pass_until(last: u32) -> impl Fn(u32) -> Ruling {
    move |threads| if threads <= last { Ruling::Pass } else { Ruling::Fail }
}

#[test]
fn each_rating_is_confirmed_by_its_own_final_experiment() {
    let (soar, socialites, ran) = check(|t, _| (t as f64 * (40.0 - t as f64), pass_until(30)(t)));
    assert_eq!((soar.threads, soar.value, socialites.threads, socialites.value), (20, 400.0, 30, 30.0));
    let finals: Vec<u32> = ran.iter().filter(|(_, is_final)| *is_final).map(|(t, _)| *t).collect();
    assert_eq!(finals, [20, 30]);
    assert_eq!(soar.confirmed_by, Some(ran.len() as u32 - 1));
    assert!(soar.notes.is_empty() && socialites.notes.is_empty());
    let searched: Vec<u32> = ran.iter().filter(|(_, is_final)| !is_final).map(|(t, _)| *t).collect();
    let often = |t: &u32| searched.iter().filter(|other| *other == t).count();
    assert!(searched.iter().all(|t| often(t) <= MOST_SAMPLES), "a T ran too often: {ran:?}");
}

#[test]
fn one_final_experiment_serves_both() {
    let (soar, socialites, ran) = check(|t, _| (t as f64, Ruling::Pass));
    assert_eq!((soar.threads, socialites.threads, soar.at_least, socialites.at_least), (64, 64, true, true));
    assert_eq!(ran.iter().filter(|(_, is_final)| *is_final).count(), 1);
}

#[test]
fn a_final_that_fails_gives_the_next_lower_t() {
    let (_, socialites, _) = check(|t, is_final| {
        let last = if is_final { 20 } else { 32 };
        (100.0, pass_until(last)(t))
    });
    assert_eq!((socialites.threads, socialites.at_least), (16, false));
    assert!(socialites.confirmed_by.is_some());
    assert!(socialites.notes[0].contains("T=32 passed in the search"), "{:?}", socialites.notes);
}

#[test]
fn finals_are_bounded() {
    let (soar, socialites, ran) = check(|t, is_final| (t as f64, if is_final { Ruling::Fail } else { Ruling::Pass }));
    assert_eq!((soar.confirmed_by, socialites.confirmed_by), (None, None));
    assert!(ran.iter().filter(|(_, is_final)| *is_final).count() <= 2 * MOST_FINALS as usize);
    assert!(
        socialites.threads > 0 && socialites.notes.last().unwrap().contains("is not confirmed by a final experiment")
    );
}

/// Three final experiments of the rating failed, but the T that is left has one of the other
/// rating.
#[test]
fn the_final_of_the_other_rating_confirms_too() {
    let mut number = 0;
    let mut run = |threads: u32, purpose: &Purpose| {
        number += 1;
        let is_final = *purpose != Purpose::Search;
        let ruling = if is_final && threads > 2 { Ruling::Fail } else { Ruling::Pass };
        let throughput_per_s = 100.0 - 20.0 * f64::from(threads.abs_diff(2));
        Ok(trial(number, threads, throughput_per_s, ruling, purpose.clone()))
    };
    let mut rater = Rater::new(&mut run, Limits { max_load: 5, ..LIMITS }, Unit::Threads);
    let searched = rater.search(Method::Exhaustive, Wanted::Both).unwrap();
    let Ratings { soar, socialites, .. } = rater.confirm(&searched).unwrap();
    let (soar, socialites) = (soar.unwrap(), socialites.unwrap());
    assert_eq!((soar.threads, socialites.threads), (2, 2));
    assert!(socialites.confirmed_by.is_some() && socialites.confirmed_by == soar.confirmed_by);
    assert!(!socialites.notes.iter().any(|note| note.contains("not confirmed")), "{:?}", socialites.notes);
}

#[test]
fn no_t_passes() {
    let (soar, socialites, ran) = check(|_, _| (100.0, Ruling::Fail));
    assert_eq!((soar.threads, soar.value, socialites.threads, socialites.value), (0, 0.0, 0, 0.0));
    assert_eq!(ran, [(1, false), (1, false)], "the fail is repeated once");
}

#[test]
fn void_experiments_are_named() {
    let ruling = |t: u32| if t < 8 { Ruling::Pass } else { Ruling::Void };
    let (soar, socialites, _) = check(|t, _| (t as f64, ruling(t)));
    assert_eq!((soar.threads, socialites.threads), (7, 7));
    let clause = Some("upper bound not verified: experiments 4 and 5 (T=8) were void: because".to_string());
    assert_eq!((soar.rests_on_void, socialites.rests_on_void), (clause.clone(), clause));
}

#[test]
fn a_void_final_experiment_is_named_too() {
    let ruling = |t: u32, is_final: bool| match (t, is_final) {
        (8, true) => Ruling::Void,
        (..=8, _) => Ruling::Pass,
        _ => Ruling::Fail,
    };
    let (_, socialites, ran) = check(|t, is_final| (t as f64, ruling(t, is_final)));
    // A void final experiment is repeated once; the second one counts.
    let number = ran.iter().rposition(|ran| *ran == (8, true)).unwrap() + 1;
    assert_eq!(ran.iter().filter(|ran| **ran == (8, true)).count(), 2);
    assert_eq!((socialites.threads, socialites.confirmed_by.is_some()), (4, true));
    let clause = format!("upper bound not verified: experiment {number} (T=8) was void: because");
    assert_eq!(socialites.rests_on_void, Some(clause));
}

#[test]
fn a_rating_lists_the_experiments_it_rests_on() {
    let (soar, socialites, ran) = check(|t, _| (t as f64 * (40.0 - t as f64), pass_until(30)(t)));
    let threads = |experiments: &[u32]| -> Vec<(u32, bool)> {
        experiments.iter().map(|experiment| ran[*experiment as usize - 1]).collect()
    };
    // The last pass, the first fail (twice, because it is a border), the final experiment.
    assert_eq!(threads(&socialites.rests_on), [(30, false), (31, false), (31, false), (30, true)]);
    assert_eq!(ends(&socialites), (30.0, 30.0));
    let soar_threads = threads(&soar.rests_on);
    assert!(soar_threads.contains(&(20, false)) && soar_threads.ends_with(&[(20, true)]), "{soar_threads:?}");
    // Every sample of the T found is listed.
    let samples = ran.iter().filter(|ran| **ran == (20, false)).count();
    assert_eq!(soar_threads.iter().filter(|ran| **ran == (20, false)).count(), samples);
    let (low, high) = ends(&soar);
    assert!(low <= 400.0 && 400.0 <= high, "{:?}", soar.interval);
}

#[test]
fn a_final_that_fails_moves_the_border() {
    let (_, socialites, _) = check(|t, is_final| (100.0, pass_until(if is_final { 20 } else { 32 })(t)));
    assert_eq!(ends(&socialites), (16.0, 31.0));
    let experiments = socialites.rests_on.len();
    assert!(socialites.rests_on.is_sorted() && experiments >= 4, "{:?}", socialites.rests_on);
}

#[test]
fn the_interval_stays_around_the_confirmed_value() {
    let (soar, ..) = check(|t, is_final| (t as f64 * if is_final { 2.0 } else { 1.0 }, Ruling::Pass));
    let (low, high) = ends(&soar);
    assert_eq!(soar.value, 128.0);
    assert!(low < 128.0 && 128.0 < high && high < 150.0, "{:?}", soar.interval);
}

#[test]
fn the_best_final_experiment_is_the_soar() {
    // Short experiments mislead: in the long ones more threads do better.
    let (soar, _, _) = check(|t, is_final| (if is_final { 100.0 + t as f64 } else { 200.0 - t as f64 }, Ruling::Pass));
    assert_eq!((soar.threads, soar.value, soar.at_least), (64, 164.0, true));
    assert!(soar.notes[0].contains("the search found T=1"), "{:?}", soar.notes);
}

/// Chance in a final experiment of the other rating undid a peak that the search had found.
#[test]
fn a_difference_within_the_spread_does_not_undo_a_peak() {
    let searched = |t: u32| if t < 4 { 2500.0 * f64::from(t) } else { 10_000.0 - 30.0 * f64::from(t) };
    // Without noise any difference would exceed the spread.
    let up_and_down = Cell::new(1.0);
    let (soar, socialites, _) = check(|t, is_final| match (t, is_final) {
        (4, true) => (9857.0, Ruling::Pass),
        (_, true) => (9905.0, Ruling::Pass),
        (t, false) => {
            up_and_down.set(-up_and_down.get());
            (searched(t) + 10.0 * up_and_down.get(), Ruling::Pass)
        }
    });
    assert_eq!((soar.threads, soar.value, soar.at_least), (4, 9857.0, false));
    assert_eq!((socialites.threads, socialites.at_least), (64, true));
    assert!(soar.notes.is_empty(), "{:?}", soar.notes);
}

/// The SoAR said both that an experiment had confirmed it and that it rested on the search alone.
#[test]
fn a_rating_that_the_other_ones_final_confirms_does_not_rest_on_the_search_alone() {
    let mut number = 0;
    let mut run = |threads: u32, purpose: &Purpose| {
        number += 1;
        let ruling = if threads > 1 { Ruling::Fail } else { Ruling::Pass };
        Ok(trial(number, threads, 100.0, ruling, purpose.clone()))
    };
    let mut rater = Rater::new(&mut run, LIMITS, Unit::Threads);
    (1..=4).for_each(|t| rater.keep(&trial(t, t, 100.0 * f64::from(t), Ruling::Pass, Purpose::Search)));
    let found = |threads| Some(Found { load: threads, ..Found::default() });
    let searched = Searched { soar: found(4), socialites: found(1), rate: None };
    let Ratings { soar, socialites, .. } = rater.confirm(&searched).unwrap();
    let (soar, socialites) = (soar.unwrap(), socialites.unwrap());
    assert_eq!((soar.threads, soar.value, soar.confirmed_by), (1, 100.0, Some(4)));
    assert_eq!(socialites.confirmed_by, Some(4));
    assert!(!soar.notes.iter().any(|note| note.contains("not confirmed")), "{:?}", soar.notes);
    assert!(soar.rests_on.contains(&4), "{:?}", soar.rests_on);
}

/// A SoAR a fifth below what the search saw had no note.
#[test]
fn a_final_far_from_the_search_is_said_once() {
    let store = |t: u32, is_final: bool| (f64::from(t) * if is_final { 78.0 } else { 100.0 }, Ruling::Pass);
    let (soar, socialites, ran) = check(store);
    let expect = format!("the final experiment {} is 22% below the search's 6,400/s at T=64", ran.len());
    assert_eq!((soar.notes, socialites.notes), (vec![expect], Vec::new()));
    let (soar, ..) = check(|t, is_final| (store(t, is_final).0 * if is_final { 1.2 } else { 1.0 }, Ruling::Pass));
    assert!(soar.notes.is_empty(), "{:?}", soar.notes);
}

/// The SoAR was left at T=4 after three final experiments. Then the final experiment of
/// Socialites with T=4 failed, and the SoAR rested on a T that was known to miss the SLA.
#[test]
fn a_final_of_the_other_rating_that_fails_counts_too() {
    let mut number = 0;
    let mut run = |threads: u32, purpose: &Purpose| {
        number += 1;
        let ruling = if threads > 2 { Ruling::Fail } else { Ruling::Pass };
        Ok(trial(number, threads, 100.0, ruling, purpose.clone()))
    };
    let mut rater = Rater::new(&mut run, LIMITS, Unit::Threads);
    let kept = [1, 2, 4, 5, 6, 7];
    kept.iter().for_each(|t| rater.keep(&trial(20 + t, *t, 100.0 * f64::from(*t), Ruling::Pass, Purpose::Search)));
    let found = |threads| Some(Found { load: threads, ..Found::default() });
    let searched = Searched { soar: found(7), socialites: found(4), rate: None };
    let Ratings { soar, socialites, .. } = rater.confirm(&searched).unwrap();
    let soar = soar.unwrap();
    assert_eq!((soar.threads, soar.confirmed_by, socialites.unwrap().threads), (2, Some(5), 2));
    let expect = "T=4 passed in the search but not in final experiment 4";
    assert!(soar.notes.iter().any(|note| note.contains(expect)), "{:?}", soar.notes);
}

/// If all experiments were void, it is unknown whether the store keeps the SLA.
#[test]
fn a_store_that_could_not_be_measured_is_not_said_to_miss_the_sla() {
    let (soar, socialites, ran) = check(|_, _| (0.0, Ruling::Void));
    assert_eq!(ran, [(1, false), (1, false)], "a void experiment is repeated once");
    let why = "nothing could be measured, because all 2 experiments were void: because";
    for rating in [soar, socialites] {
        assert_eq!((rating.value, rating.threads, rating.unmeasured), (0.0, 0, true));
        assert_eq!((rating.rests_on_void.as_deref(), &rating.rests_on[..]), (Some(why), &[1, 2][..]));
    }
    // One experiment that failed says something about the store.
    let ruling = |t: u32| if t == 1 { Ruling::Fail } else { Ruling::Void };
    let (soar, ..) = check(|t, _| (100.0, ruling(t)));
    assert_eq!((soar.threads, soar.unmeasured), (0, false));
}

/// The rating became "0: no number of threads kept the SLA".
#[test]
fn a_void_final_experiment_of_the_lowest_t_leaves_it_unconfirmed() {
    let (soar, socialites, ran) = check(|t, is_final| match (t, is_final) {
        (1, false) => (100.0, Ruling::Pass),
        (1, true) => (0.0, Ruling::Void),
        _ => (100.0, Ruling::Fail),
    });
    let number = ran.len();
    assert_eq!((soar.threads, soar.value, socialites.value), (1, 100.0, 1.0));
    let clause = format!("not verified by a final experiment: experiment {number} (T=1) was void: because");
    for rating in [soar, socialites] {
        assert_eq!((rating.confirmed_by, rating.rests_on_void), (None, Some(clause.clone())));
        assert!(rating.notes.last().unwrap().contains("is not confirmed by a final experiment"), "{:?}", rating.notes);
    }
}

/// Rates a store given as (rate, is final) -> ruling by arrival rate, with 64 threads.
fn check_by_rate(store: impl Fn(u32, bool) -> Ruling) -> (Rating, Vec<(u32, bool)>) {
    let mut ran = Vec::new();
    let mut run = |rate: u32, purpose: &Purpose| {
        let is_final = *purpose != Purpose::Search;
        ran.push((rate, is_final));
        let trial = trial(ran.len() as u32, 64, f64::from(rate), store(rate, is_final), purpose.clone());
        Ok(Trial { rate_per_s: Some(rate), ..trial })
    };
    let limits = Limits { first_load: 100, max_load: 100_000, ..LIMITS };
    let mut rater = Rater::new(&mut run, limits, Unit::SessionsPerS);
    let searched = rater.search(Method::Heuristic, Wanted::Rate).unwrap();
    let ratings = rater.confirm(&searched).unwrap();
    assert_eq!((ratings.soar, ratings.socialites), (None, None));
    (ratings.rate.unwrap(), ran)
}

#[test]
fn an_arrival_rate_is_confirmed_like_any_rating() {
    let (rate, ran) = check_by_rate(|rate, _| pass_until(5_000)(rate));
    assert!((4_750.0..=5_000.0).contains(&rate.value), "{rate:?}");
    assert_eq!((rate.threads, rate.confirmed_by, rate.at_least), (64, Some(ran.len() as u32), false));
    let (low, high) = ends(&rate);
    assert!(low == rate.value && high > 5_000.0 && high <= 5_250.0, "{rate:?}");
    assert_eq!(rate.interval.unwrap().basis, "from the last rate that passed to the first that failed");
    assert!(rate.notes.is_empty() && ran.iter().filter(|(_, is_final)| *is_final).count() == 1, "{ran:?}");
}

#[test]
fn notes_and_voids_of_a_rate_name_it() {
    let (rate, _) = check_by_rate(|rate, is_final| pass_until(if is_final { 700 } else { 850 })(rate));
    assert!(rate.value <= 700.0 && rate.confirmed_by.is_some(), "{rate:?}");
    assert!(rate.notes[0].contains("sessions/s passed in the search but not in final experiment"), "{:?}", rate.notes);
    assert!(rate.notes[0].contains("next lower rate that passed: "), "{:?}", rate.notes);
    let (low, high) = ends(&rate);
    assert!(low == rate.value && high <= 850.0, "the final experiment that failed bounds it: {rate:?}");
    let (rate, _) = check_by_rate(|rate, _| if rate < 200 { Ruling::Pass } else { Ruling::Void });
    assert!(rate.rests_on_void.as_ref().unwrap().contains(" sessions/s) were void: because"), "{rate:?}");
    let (rate, _) = check_by_rate(|_, _| Ruling::Fail);
    assert_eq!((rate.value, rate.threads, rate.interval), (0.0, 0, None));
}
