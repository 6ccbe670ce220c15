use super::*;

fn bar(value: f64, label: &str) -> Bar {
    Bar { value: Some(value), label: label.into(), interval: None }
}

/// Figure 3 of bg-2013, with the numbers that can be read off it.
fn figure_3() -> BarChart {
    let series = |label: &str, bars: [Bar; 4]| BarSeries { label: label.into(), bars: bars.into(), links: Vec::new() };
    BarChart {
        title: "View Profile by size of the profile image".into(),
        description: "three stores at four sizes".into(),
        x_label: "profile image".into(),
        y_label: "SoAR (operations/s)".into(),
        groups: ["none", "2 KB", "12 KB", "500 KB"].map(String::from).into(),
        series: vec![
            series("SQL-X", [bar(12_442.0, "12,442"), bar(9000.0, "9,000"), bar(120.0, "120"), bar(0.0, "(0)")]),
            series(
                "MongoDB",
                [bar(32_452.0, "32,452"), bar(20_000.0, "20,000"), bar(9_000.0, "9,000"), bar(300.0, "300")],
            ),
            series(
                "CASQL",
                [
                    bar(13_000.0, "13,000"),
                    bar(12_000.0, "12,000"),
                    bar(8000.0, "8,000"),
                    Bar { value: None, label: "failed".into(), interval: None },
                ],
            ),
        ],
        scale: Scale::suited_to([12_442.0, 120.0, 32_452.0]),
    }
}

/// The values of an attribute of all elements of a kind.
fn numbers(svg: &str, element: &str, attribute: &str) -> Vec<i32> {
    let (opening, name) = (format!("<{element} "), format!("{attribute}=\""));
    let elements = svg.split(&opening).skip(1);
    let text = elements.filter_map(|e| e.split(&name).nth(1)?.split('"').next());
    text.filter_map(|t| t.parse().ok()).collect()
}

#[test]
fn bars_grow_with_their_values_and_zero_has_none() {
    let chart = figure_3();
    let svg = bars(&chart).unwrap();
    // The first rectangle is the background, the next three belong to the legend.
    let heights = numbers(&svg, "rect", "height")[4..].to_vec();
    assert_eq!(heights.len(), 10, "{svg}");
    let of = |value: f64| {
        let values =
            chart.groups.iter().enumerate().flat_map(|(g, _)| chart.series.iter().map(move |s| s.bars[g].value));
        let drawn = values.flatten().filter(|v| *v > 0.0).position(|v| v == value).unwrap();
        heights[drawn]
    };
    assert!(of(32_452.0) > of(20_000.0) && of(20_000.0) > of(12_442.0) && of(300.0) > of(120.0));
    // Equal ratios give equal differences: the scale is logarithmic.
    let (hundredfold, thirtyfold) = (of(12_000.0) - of(120.0), of(9000.0) - of(300.0));
    assert!((f64::from(hundredfold) / f64::from(thirtyfold) - 2.0 / 30f64.log10()).abs() < 0.02);
}

#[test]
fn a_chart_says_everything_in_words_too() {
    insta::assert_snapshot!(bars(&figure_3()).unwrap());
}

#[test]
fn hostile_words_are_escaped() {
    let hostile = "</desc><script>alert(\"1\" + '2')</script> & \u{0}\u{1b}";
    let mut chart = figure_3();
    let words = [&mut chart.title, &mut chart.description, &mut chart.x_label, &mut chart.y_label];
    words.into_iter().for_each(|word| *word = hostile.into());
    chart.groups = vec![hostile.into()];
    chart.series.truncate(1);
    chart.series[0].label = hostile.into();
    chart.series[0].bars = vec![bar(1.0, hostile)];
    let svg = bars(&chart).unwrap();
    assert!(!svg.contains("<script") && !svg.contains("alert(\""), "{svg}");
    assert!(!svg.contains(['\u{0}', '\u{1b}']));
    assert_eq!(svg.matches("</desc>").count(), 1);
    assert!(svg.contains("&lt;script&gt;alert(&quot;1&quot; + &apos;2&apos;)"));
    let tags = |c: char| svg.matches(c).count();
    assert_eq!(tags('<'), tags('>'));
}

#[test]
fn crowded_bars_have_upright_labels_and_stay_inside() {
    let mut chart = figure_3();
    chart.series = (0..8)
        .flat_map(|i| {
            chart.series.iter().map(move |s| BarSeries { label: format!("{} of design {i}", s.label), ..s.clone() })
        })
        .collect();
    let svg = bars(&chart).unwrap();
    assert!(svg.contains("rotate(270"), "no label is upright");
    for (x, width) in numbers(&svg, "rect", "x").into_iter().zip(numbers(&svg, "rect", "width")) {
        assert!(x >= 0 && x + width <= 800, "{x} + {width}");
    }
    let height = numbers(&svg, "svg", "height")[0];
    assert!(numbers(&svg, "text", "y").into_iter().all(|y| (0..height).contains(&y)));
}

/// The label of a bar is above its interval, not behind it.
#[test]
fn bars_have_their_intervals() {
    let mut chart = figure_3();
    let plain = bars(&chart).unwrap();
    chart.series[0].bars[0].interval = Some((11_000.0, 30_000.0));
    let svg = bars(&chart).unwrap();
    let lines = |svg: &str| svg.matches("<polyline").count();
    assert_eq!(lines(&svg), lines(&plain) + 3, "a line with a bar at each end");
    let y = |svg: &str| {
        let label = svg.split("<text ").find(|text| text.contains("\n12,442\n")).unwrap();
        numbers(&format!("<text {label}"), "text", "y")[0]
    };
    assert!(y(&svg) < y(&plain) - 20, "{} {}", y(&svg), y(&plain));
}

/// A phone shows the same names as a wide screen, upright if they need it, and no tooltips.
#[test]
fn narrow_pictures_lose_no_names() {
    let mut chart = figure_3();
    chart.groups = ["none", "2 KB", "twelve", "half a megabyte"].map(String::from).into();
    let svg = chart.svg(Shape::Narrow).unwrap();
    assert!(svg.starts_with("<svg width=\"360\"") && !svg.contains('…'), "{svg}");
    assert!(svg.contains("\nmegabyte\n"), "names take several lines");
    chart.groups[2] = "characteristically".into();
    let svg = chart.svg(Shape::Narrow).unwrap();
    assert!(svg.contains("\ncharacteristically\n") && svg.contains("\nhalf a megabyte\n"), "{svg}");
    let mut lines = figure_11();
    lines.series[0].tooltips = vec!["2%".into()];
    assert!(lines.svg(Shape::Wide).unwrap().contains("<title>2%"));
    assert!(!lines.svg(Shape::Narrow).unwrap().contains("<title>2%"));
}

#[test]
fn a_chart_of_nothing_is_still_one() {
    let mut chart = figure_3();
    chart.series.clear();
    assert!(bars(&chart).unwrap().contains("<title"));
    chart.groups.clear();
    assert!(bars(&chart).unwrap().contains("<title"));
}

#[test]
fn lines_have_markers_of_different_shape() {
    let point = |x: f64, y: f64, mark| LinePoint { x, y, mark };
    let series = |label: &str, factor: f64| LineSeries {
        label: label.into(),
        points: [1.0, 2.0, 4.0, 8.0, 16.0]
            .map(|t| point(t, factor * t * (20.0 - t), if t > 8.0 { Mark::Hollow } else { Mark::Filled }))
            .into(),
        ..LineSeries::default()
    };
    let svg = lines(&LineChart {
        title: "Throughput against T".into(),
        description: "two stores".into(),
        x_label: "T (threads)".into(),
        y_label: "operations/s".into(),
        across: Across::Numbers(Scale::Linear),
        y_scale: Scale::Linear,
        series: vec![series("one", 100.0), series("two", 61.0)],
        rules: Vec::new(),
    })
    .unwrap();
    assert_eq!(
        (svg.matches("<circle").count(), svg.matches("<polygon").count()),
        (12, 6),
        "a circle is drawn twice, filled and around"
    );
    insta::assert_snapshot!(svg);
}

/// Shares and rates are in one chart, each with an axis of its own.
#[test]
fn a_second_axis_is_on_the_right() {
    let point = |(x, y): (f64, f64)| LinePoint { x, y, mark: Mark::Filled };
    let series = |label: &str, values: [f64; 3], on_right: Option<&str>| LineSeries {
        label: label.into(),
        points: [0.0, 1.0, 2.0].into_iter().zip(values).map(point).collect(),
        stroke: Stroke::Plain,
        on_right: on_right.map(String::from),
        ..LineSeries::default()
    };
    let chart = |on_right| LineChart {
        title: "M and the rate".into(),
        description: "M falls as the rate rises".into(),
        x_label: "seconds".into(),
        y_label: "M (%)".into(),
        across: Across::Numbers(Scale::Linear),
        y_scale: Scale::Linear,
        series: vec![series("M", [100.0, 50.0, 0.0], None), series("wanted", [0.0, 350.0, 700.0], on_right)],
        rules: Vec::new(),
    };
    let corners = |svg: &str| data_lines(svg);
    let (one, two) = (lines(&chart(None)).unwrap(), lines(&chart(Some("sessions/s"))).unwrap());
    // Beside a rate of 700, a share of 100% is at the bottom. By itself it is as high as the rate.
    let heights = |svg: &str| (corners(svg)[0][0].1, corners(svg)[1][2].1);
    assert!(heights(&one).0 > heights(&one).1 + 200, "{one}");
    assert_eq!(heights(&two).0, heights(&two).1, "{two}");
    assert!(two.contains("sessions/s") && two.matches("\n700\n").count() == 1, "{two}");
    assert!(chart(Some("sessions/s")).svg(Shape::Narrow).unwrap().contains("sessions/s"));
}

/// Many points at one place. Names with room are written, none twice; the others are only in
/// tooltips.
#[test]
fn names_stand_beside_points_as_far_as_there_is_room() {
    let points: Vec<LinePoint> = [(1.0, 10.0), (2.0, 20.0), (4.0, 40.0)]
        .into_iter()
        .chain([(8.0, 60.0); 12])
        .map(|(x, y)| LinePoint { x, y, mark: Mark::Filled })
        .collect();
    let names: Vec<String> = (1..=points.len()).map(|number| format!("n{number}")).collect();
    let chart = LineChart {
        title: "Experiments".into(),
        description: "in their order".into(),
        x_label: "threads".into(),
        y_label: "operations/s".into(),
        across: Across::Numbers(Scale::Log),
        y_scale: Scale::Linear,
        series: vec![LineSeries {
            label: "pass".into(),
            points,
            names,
            stroke: Stroke::Scattered,
            ..LineSeries::default()
        }],
        rules: Vec::new(),
    };
    let svg = lines(&chart).unwrap();
    let written: Vec<&str> =
        svg.lines().map(str::trim).filter(|line| line.starts_with('n') && line[1..].parse::<u32>().is_ok()).collect();
    assert_eq!(written[..4], ["n1", "n2", "n3", "n4"]);
    assert!(written.len() < 15, "{written:?}");
    let number = |text: &str, name: &str| -> i32 {
        text.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    let places: Vec<(i32, i32)> = svg
        .split("<text")
        .skip(1)
        .filter(|text| text.split_once(">\n").is_some_and(|(_, rest)| rest.starts_with('n')))
        .map(|text| (number(text, "x"), number(text, "y")))
        .collect();
    assert_eq!(places.len(), written.len());
    for (place, (x, y)) in places.iter().enumerate() {
        for (other_x, other_y) in &places[place + 1..] {
            let apart = (x - other_x).abs() > 11 || (y - other_y).abs() >= 10;
            assert!(apart, "{places:?}");
        }
    }
}

/// The first experiment of a search often stands in the upper left corner, near a limit.
#[test]
fn a_name_finds_room_in_a_corner() {
    let points =
        vec![LinePoint { x: 1.0, y: 100.0, mark: Mark::Filled }, LinePoint { x: 100.0, y: 99.0, mark: Mark::Filled }];
    let svg = lines(&LineChart {
        title: "Within".into(),
        description: "two".into(),
        x_label: "threads".into(),
        y_label: "%".into(),
        across: Across::Numbers(Scale::Log),
        y_scale: Scale::Linear,
        series: vec![LineSeries { points, names: vec!["n1".into(), "n2".into()], ..LineSeries::default() }],
        rules: vec![Rule::at(95.0, "SLA: at least 95%".into())],
    })
    .unwrap();
    assert!(svg.contains("\nn1\n") && svg.contains("\nn2\n"), "{svg}");
}

/// Figure 11 of bg-2013, with approximate values. One store has a gap, and two have the same
/// values.
fn figure_11() -> LineChart {
    let series = |label: &str, shares: [f64; 4]| LineSeries {
        label: label.into(),
        points: shares
            .iter()
            .enumerate()
            .map(|(x, y)| LinePoint { x: x as f64, y: *y, mark: if *y == 12.5 { Mark::Hollow } else { Mark::Filled } })
            .collect(),
        ..LineSeries::default()
    };
    LineChart {
        title: "Unpredictable data by threads (bg-2013, Figure 11)".into(),
        description: "three times to live".into(),
        x_label: "threads T".into(),
        y_label: "unpredictable reads (%)".into(),
        across: Across::Points(["1", "10", "50", "100"].map(String::from).into()),
        y_scale: Scale::Linear,
        series: vec![
            series("TTL 120 s", [2.0, 19.5, 30.0, 36.0]),
            series("TTL 60 s", [1.0, 11.0, f64::NAN, 20.0]),
            series("TTL 30 s", [0.5, 6.0, 8.0, 12.5]),
            series("invalidation", [0.0; 4]),
            series("leases", [0.0; 4]),
        ],
        rules: Vec::new(),
    }
}

/// The corners of the data lines. They do not end where they began, unlike the outlines of
/// markers, and are no ticks.
fn data_lines(svg: &str) -> Vec<Vec<(i32, i32)>> {
    let corner = |text: &str| text.split_once(',').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()));
    let lines = svg.split("<polyline ").skip(1).filter(|line| line.contains("stroke-width=\"2\""));
    let corners = lines.map(|line| line.split("points=\"").nth(1).unwrap().split('"').next().unwrap());
    let corners = corners.map(|text| text.split_whitespace().filter_map(corner).collect::<Vec<_>>());
    corners.filter(|line| line.first() != line.last()).collect()
}

#[test]
fn named_points_stand_at_equal_distances_and_markers_side_by_side() {
    let mut chart = figure_11();
    let svg = lines(&chart).unwrap();
    insta::assert_snapshot!(svg);
    let drawn = data_lines(&svg);
    // A missing point interrupts its line, and a single point has no line.
    assert_eq!(drawn.iter().map(Vec::len).collect::<Vec<_>>(), [4, 2, 4, 4, 4]);
    chart.series[1].points[2].y = 15.0;
    assert_eq!(data_lines(&lines(&chart).unwrap())[1].len(), 4);
    // The distance from 1 to 10 equals that from 50 to 100.
    let across: Vec<i32> = drawn[0].iter().map(|(x, _)| *x).collect();
    assert!(across.windows(3).all(|w| (w[2] - w[1] - (w[1] - w[0])).abs() <= 1), "{across:?}");
    // The last two series have the same values and do not hide each other.
    assert!(drawn[3].iter().zip(&drawn[4]).all(|(a, b)| a.1 == b.1 && b.0 - a.0 > 10), "{drawn:?}");
}

/// A long run makes no larger page, and the page says what is left out.
#[test]
fn a_line_of_very_many_points_stays_small() {
    let point = |x: u32| LinePoint { x: f64::from(x), y: f64::from(x % 97), mark: Mark::Filled };
    let mut chart = figure_11();
    chart.across = Across::Numbers(Scale::Linear);
    chart.series.truncate(1);
    chart.series[0].stroke = Stroke::Plain;
    chart.series[0].points = (0..500_000).map(point).collect();
    let (svg, data) = (chart.svg(Shape::Wide).unwrap(), chart.data().unwrap().to_string());
    assert!(svg.len() < 60_000 && data.len() < 60_000, "{} {}", svg.len(), data.len());
    assert_eq!(
        chart.left_out().as_deref(),
        Some("Drawn are 2,400 of 500,000 points: the highest and the lowest of each short stretch.")
    );
    chart.series[0].points.truncate(2000);
    assert_eq!(chart.left_out(), None);
}

/// The script gets what the picture shows: the ends of the axes, colours, marks, gaps, links.
#[test]
fn a_chart_is_data_too() {
    let mut chart = figure_11();
    chart.series[0].links = vec!["#a".into(); 4];
    chart.series[4].is_off = true;
    let data = chart.data().unwrap();
    assert_eq!(data["x"]["names"], serde_json::json!(["1", "10", "50", "100"]));
    assert_eq!(data["y"]["range"], serde_json::json!([0.0, 40.0]));
    assert_eq!(data["series"][0]["colour"], "#0072b2");
    assert_eq!(data["series"][1]["y"], serde_json::json!([1.0, 11.0, null, 20.0]));
    assert_eq!(data["series"][2]["signs"], "fffh");
    assert_eq!((&data["series"][0]["links"][3], &data["series"][4]["off"]), (&"#a".into(), &true.into()));
    // What only the legend of a page has is not in the picture.
    let svg = lines(&chart).unwrap();
    assert!(svg.contains("invalidation") && !svg.contains("\nleases\n"), "{svg}");
    let bars = figure_3().data().unwrap();
    assert_eq!(
        (&bars["kind"], &bars["series"][0]["y"][3], &bars["y"]["log"]),
        (&"bars".into(), &0.0.into(), &true.into())
    );
}
