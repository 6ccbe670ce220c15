//! Counts what the oldest transactions have done, and forgets them. Each anomaly is counted here, once.

use schemas::anomalies::{Anomalies, Class, Dependency};

use super::classify::CYCLES;
use super::window::{NO_CLASS, NONE, Role, Saw, Window};
use super::witness;

/// Counts the oldest transactions of the window, and forgets them.
pub(super) fn retire(window: &mut Window, count: usize, fragment: u32, found: &mut Anomalies) {
    for place in 0..count {
        if window.is_active(place) {
            count_active(window, place, fragment, found);
        }
    }
    window.forget(count);
}

fn count_active(window: &mut Window, place: usize, fragment: u32, found: &mut Anomalies) {
    let (own, node) = (window.base + place as u64, &window.nodes[place]);
    let end_ns = node.transaction.end_ns;
    if let Some(class) = CYCLES.into_iter().find(|class| *class as u8 == node.class) {
        found.add(class, 1, end_ns);
    }
    if node.is_stale && node.class == NO_CLASS {
        found.add(Class::StaleTransaction, 1, end_ns);
    }
    if node.fuzzy > 0 {
        found.add(Class::FuzzyRead, u64::from(node.fuzzy), end_ns);
        if found.witness(Class::FuzzyRead).is_none()
            && let Some(witness) = witness::of_fuzzy_read(window, place, fragment)
        {
            found.keep(witness);
        }
    }
    for number in window.events_of(place) {
        let access = *window.access(number);
        if !matches!(access.role, Role::Read | Role::Overwrite) {
            continue;
        }
        let version = window.version(access.version);
        let saw = window.saw(version, window.event(number));
        if saw == Saw::Aborted {
            found.add(Class::AbortedRead, 1, end_ns);
            keep_pair(window, Class::AbortedRead, version.aborted, number, Dependency::Read, fragment, found);
        } else if version.is_intermediate && version.writer != own {
            found.add(Class::IntermediateRead, 1, end_ns);
            keep_pair(window, Class::IntermediateRead, version.writer, number, Dependency::Read, fragment, found);
        }
        // What a rolled back try wrote is no version that two could overwrite.
        if access.role == Role::Overwrite && saw == Saw::Written {
            let before = version.counted_overwriter;
            if before != NONE && before != own {
                found.add(Class::LostUpdate, 1, end_ns);
                keep_pair(window, Class::LostUpdate, before, number, Dependency::OverwroteSame, fragment, found);
            }
            window.version_mut(access.version).counted_overwriter = own;
        }
    }
}

/// Keeps two transactions that have to do with the version of an event as a witness, if the other one
/// has not been forgotten.
fn keep_pair(
    window: &Window,
    class: Class,
    other: u64,
    number: u64,
    why: Dependency,
    fragment: u32,
    found: &mut Anomalies,
) {
    if found.witness(class).is_some() {
        return;
    }
    let own = window.place(window.access(number).node);
    if let (Some(other), Some(own)) = (window.place(other), own) {
        found.keep(witness::of_pair(window, class, [other, own], number, why, fragment));
    }
}
