//! Comparisons by arrival rate.

use schemas::pace::Overload;
use schemas::verdict::Interval;

use super::*;

fn plan() -> String {
    PLAN.replace(
        "max_threads = 32",
        "rating = \"rate\"\nfirst_rate = 50\nmax_rate = 3200\nthreads = 16\noverload = \"skip\"",
    )
}

#[test]
fn the_cells_of_a_plan_by_rate_are_ratings_by_rate() {
    let plans = PlanFolder::new(&plan());
    let first = |comparison: Comparison| match &comparison.cells[0].job {
        Job::Rate(rating) => rating.clone(),
        job => panic!("{job:?}"),
    };
    let rating = first(plans.resolved(|_| ()).unwrap());
    assert_eq!((rating.wanted, rating.threads), (rate::Wanted::Rate, Some(16)));
    assert_eq!((rating.limits.first_load, rating.limits.max_load), (50, 3200));
    assert_eq!((rating.setting.by_rate, rating.setting.pace.overload), (true, Some(Overload::Skip)));
    assert_eq!(first(plans.resolved(|args| args.max_rate = Some(70)).unwrap()).limits.max_load, 70);
    let refused = |plans: &PlanFolder, change: fn(&mut CompareArgs), expect: &str| {
        let error = plans.resolved(change).unwrap_err();
        assert!(matches!(error, Failure::Usage(_)) && error.to_string().contains(expect), "{error}");
    };
    refused(&plans, |args| args.max_threads = Some(8), "rates by arrival rate; use --max-rate");
    refused(&PlanFolder::new(PLAN), |args| args.max_rate = Some(8), "rates by threads; use --max-threads");
}

/// Table, chart, page and conclusion are about the arrival rate, and so are the meanings of the marks.
#[test]
fn stores_are_compared_by_their_highest_arrival_rate() {
    let plans = PlanFolder::new(&plan());
    let between = |low: f64, high: f64| Some(Interval { low, high, basis: "b".into() });
    let rated = |name: &str| match name {
        "no-image-fast" => Ok((Rating { interval: between(4400.0, 4600.0), ..rating(4400.0) }, rating(0.0))),
        "no-image-slow" => Ok((Rating { interval: between(900.0, 950.0), ..rating(900.0) }, rating(0.0))),
        "2-kb-fast" => Ok((Rating { at_least: true, ..rating(3200.0) }, rating(0.0))),
        _ => both(0.0, 0.0),
    };
    let (ended, _) = plans.conduct(|_| (), rated);
    let document = ended.unwrap();
    assert_eq!((document.clone(), exit_code(&document)), (plans.read(), 0));
    let rates: Vec<f64> = document.cells.iter().map(|cell| outcome::ratings(&cell.outcome)[0].value).collect();
    assert_eq!(rates, [4400.0, 900.0, 3200.0, 0.0]);
    let said = plans.said.borrow().join("\n");
    let of_threads = ["SoAR", "Socialites", "number of threads"];
    let page = std::fs::read_to_string(plans.folder().page()).unwrap();
    let markdown = std::fs::read_to_string(plans.folder().table()).unwrap();
    for text in [&said, &page, &markdown] {
        for expected in ["Arrival rate (sessions/s)", "4,400", "≥ 3,200", "no arrival rate kept the SLA"] {
            assert!(text.contains(expected), "{expected:?} is not in {text}");
        }
        assert!(!of_threads.iter().any(|words| text.contains(words)), "{text}");
    }
    assert!(page.contains("SELECT point, store, rate, rate_low, rate_high"), "{page}");
    assert_eq!(
        show::conclusions(&document, &show::tables(&document)[0])[0],
        "image|bytes No image: fast has the highest arrival rate, 4,400 sessions/s."
    );
}
