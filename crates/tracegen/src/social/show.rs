//! What `trace show` says of a social network.

use schemas::manifest::Manifest;
use schemas::spec::SpecError;
use schemas::workload::social::{
    Assignment, Distribution, Histogram, SocialStatistics, SocialWorkload, SocialiteStatistics,
};

use crate::core::show::{Facts, grouped, shares_table};

/// How many characters the longest bar of a histogram has.
const BAR_CHARACTERS: u64 = 40;

/// What there is to say of a trace set.
pub(crate) fn facts(manifest: &Manifest) -> Result<Facts, SpecError> {
    let workload: SocialWorkload = manifest.spec.workload()?;
    let statistics = statistics(manifest);
    let (data, access) = (&workload.data, &workload.access);
    let access = match access.distribution {
        Distribution::Uniform => "uniform".to_string(),
        Distribution::Zipfian => format!("zipfian, theta {}", access.theta),
    };
    let mut about = Vec::new();
    let mut fact = |name, value: String| about.push((name, value));
    fact("members", format!("{}, drawn {access}", grouped(data.members)));
    fact(
        "each member",
        format!(
            "{} friends, {} invitations, {} resources with {} comments each",
            data.confirmed_per_member(),
            data.waiting_per_member(),
            data.resources_per_member,
            data.comments_per_resource
        ),
    );
    let assigned = match data.friendships {
        Assignment::Ring => "in a ring".to_string(),
        Assignment::Uniform => "uniformly".to_string(),
        Assignment::Zipfian => format!("zipfian, theta {}", data.friendships_theta),
    };
    fact(
        "friendships",
        format!(
            "{assigned}; the 20% of members with the most friends have {:.2}% of the friends",
            statistics.friends_of_top_fifth * 100.0
        ),
    );
    fact(
        "payload",
        format!(
            "attributes {}, image {}, thumbnail {}, resource {}, comment {} bytes",
            data.attribute_bytes, data.image_bytes, data.thumbnail_bytes, data.resource_bytes, data.comment_bytes
        ),
    );
    let draws = [
        ("socialites: most active", statistics.socialites.most_active),
        ("socialites: most popular 20%", statistics.socialites.top_fifth),
        ("targets: most popular 20%", statistics.targets.top_fifth),
    ];
    let threads = active_threads(manifest.active_threads_max, &statistics.socialites);
    let distributions = vec![
        histogram("friends", &statistics.friends),
        histogram("waiting invitations", &statistics.pending),
        histogram("resources on the wall", &statistics.wall_resources),
    ];
    Ok(Facts { about, draws: format!("{}\n{threads}", shares_table(&draws)), distributions })
}

/// A remark on a window that is smaller than the specification asks for.
pub(crate) fn remark(manifest: &Manifest) -> Option<String> {
    let socialites = statistics(manifest).socialites;
    is_capped(&socialites).then(|| active_threads(manifest.active_threads_max, &socialites))
}

fn statistics(manifest: &Manifest) -> SocialStatistics {
    let statistics = manifest.statistics_of::<SocialWorkload>();
    statistics.unwrap_or_else(|e| unreachable!("the statistics are checked with the manifest: {e}"))
}

/// How many threads a trace can keep busy, and the window that this follows from.
fn active_threads(most: u64, socialites: &SocialiteStatistics) -> String {
    let (asked, window) = (socialites.unique_window_asked, socialites.unique_window);
    let window = match (asked, window) {
        (0, _) => "off: a member may act in consecutive sessions".to_string(),
        _ if is_capped(socialites) => format!(
            "{} instead of {}: a fragment's window is at most half of its members",
            grouped(window),
            grouped(asked)
        ),
        _ => grouped(window),
    };
    let threads = grouped(most);
    format!("threads that this trace can keep busy: {threads} (access.unique_window {window})")
}

/// Whether the window is smaller than the specification asks for.
fn is_capped(socialites: &SocialiteStatistics) -> bool {
    socialites.unique_window < socialites.unique_window_asked
}

/// A histogram with bars: how many members have how many of something.
fn histogram(of: &str, histogram: &Histogram) -> String {
    let mut lines = vec![format!(
        "{of} per member before the first session: {} to {}, mean {:.2}",
        grouped(histogram.min),
        grouped(histogram.max),
        histogram.mean
    )];
    let rows: Vec<(String, String)> = histogram
        .buckets
        .iter()
        .map(|bucket| {
            let range = match bucket.from == bucket.to {
                true => grouped(bucket.from),
                false => format!("{} to {}", grouped(bucket.from), grouped(bucket.to)),
            };
            (range, grouped(bucket.members))
        })
        .collect();
    let ranges = rows.iter().map(|(range, _)| range.len()).max().unwrap_or_default();
    let numbers = rows.iter().map(|(_, members)| members.len()).max().unwrap_or_default();
    let most = histogram.buckets.iter().map(|bucket| bucket.members).max().unwrap_or_default();
    for ((range, members), bucket) in rows.iter().zip(&histogram.buckets) {
        // A bucket with any members has at least one character.
        let bar = (bucket.members * BAR_CHARACTERS).div_ceil(most.max(1)) as usize;
        lines.push(format!("  {range:>ranges$}  {members:>numbers$}  {}", "#".repeat(bar)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_in_effect_is_said_with_the_threads() {
        for (unique_window_asked, unique_window, active_threads_max, expect) in [
            (512, 512, 1_550, "1,550 (access.unique_window 512)"),
            (0, 0, 41, "41 (access.unique_window off: a member may act in consecutive sessions)"),
            (512, 20, 24, "24 (access.unique_window 20 instead of 512: a fragment's window is at most "),
        ] {
            let socialites =
                SocialiteStatistics { unique_window_asked, unique_window, ..SocialiteStatistics::default() };
            let line = active_threads(active_threads_max, &socialites);
            assert!(line.starts_with(&format!("threads that this trace can keep busy: {expect}")), "{line}");
        }
    }
}
