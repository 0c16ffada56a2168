//! Studies from end to end.

use super::*;

const STUDY: &str = r#"
seed = 1
duration = "2 s"
replications = 4

[links.out]
rate = "20 Mbit/s"
buffer_per_flow = "1 kB"

[traffic.video]
model = "video"
flows = 20
via = ["out"]
start_within = "333 ms"

[traffic.data]
model = "data"
flows = 10
via = ["out"]

[[sweep]]
name = "videos"
"traffic.video.flows" = [10, 20]
"traffic.data.flows" = [20, 10]

[[sweep]]
name = "policy"
labels = ["shb", "abd-weq"]
"links.out.policy" = ["shb", "abd"]
"links.out.scheduler" = ["wrr", "weq"]
"#;

const SEARCH: &str = r#"
[search]
key = "links.out.buffer_per_flow"
unit = "B"
from = 50
to = 20000
goodput = "70 %"
of = ["video"]
within = "10 %"
"#;

fn on_cores(cores: usize, study: &Study) -> Vec<Point> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(cores).build().expect("threads");
    pool.install(|| study.run(&|_| {})).expect("it is one")
}

#[test]
fn what_comes_out_does_not_depend_on_the_cores() {
    let study = Study::parse(&[STUDY, SEARCH].concat()).expect("valid");
    let (one, three) = (on_cores(1, &study), on_cores(3, &study));
    assert_eq!(one, three);
    assert_eq!(csv(&one), csv(&three));
}

#[test]
fn every_value_is_played_with_every_other() {
    let study = Study::parse(STUDY).expect("valid");
    let told = AtomicU64::new(0);
    let points =
        study.run(&|progress| _ = told.fetch_max(progress.runs, Ordering::Relaxed)).expect("it is one");
    assert_eq!(told.into_inner(), 16);
    let at: Vec<String> = points.iter().map(|point| axis::at(&point.at)).collect();
    let expected = [(10, "shb"), (10, "abd-weq"), (20, "shb"), (20, "abd-weq")];
    assert_eq!(at, expected.map(|(videos, policy)| format!("with videos = {videos}, policy = {policy}: ")));
    let csv = csv(&points);
    assert_eq!(csv.lines().count(), 5);
    assert!(csv.starts_with("videos,policy,found,data.goodput_pct,"), "{csv}");
    let figures = json(&points);
    assert_eq!(figures[3]["at"]["videos"], 20.0);
    assert!(figures[3]["traffic"]["video"]["goodput_pct"].as_f64().is_some_and(|goodput| goodput < 100.0));
    assert_eq!(words(&points).lines().count(), 5);
}

#[test]
fn a_search_finds_what_is_enough_and_what_is_less_is_not() {
    let study = Study::parse(&[STUDY, SEARCH].concat()).expect("valid");
    let point = &study.run(&|_| {}).expect("it is one")[2];
    let found = point.found.expect("20 kB are enough");
    let goodput = point.traffic["video"].goodput;
    assert!(goodput.mean - goodput.ci95 >= 0.7 && point.traffic["video"].least_goodput >= 0.63);
    let less = STUDY.replace("1 kB", &format!("{} B", found * 85 / 100));
    let less = &Study::parse(&less).expect("valid").run(&|_| {}).expect("it is one")[2].traffic["video"];
    assert!(less.goodput.mean - less.goodput.ci95 < 0.7 || less.least_goodput < 0.63, "{found}");
    let impossible = [STUDY, &SEARCH.replace("20000", "60")].concat();
    let none = &Study::parse(&impossible).expect("valid").run(&|_| {}).expect("it is one")[2];
    assert_eq!((none.found, none.traffic.len()), (None, 0));
}

#[test]
fn errors_say_what_to_do_before_anything_runs() {
    let refused = |from: &str, to: &str| {
        let text = [STUDY, SEARCH].concat();
        assert!(text.contains(from), "{from}");
        Study::parse(&text.replace(from, to)).expect_err(to).to_string()
    };
    assert!(refused("[20, 10]", "[20]").contains("has 1 values for 'traffic.data.flows' and 2 others"));
    assert!(refused("links.out.policy", "links.in.policy").contains("there is no table 'in'"));
    let error = refused("[\"shb\", \"abd\"]", "[\"shb\", \"adb\"]");
    assert!(error.contains("with videos = 10, policy = abd-weq") && error.contains("adb"), "{error}");
    assert!(refused("[10, 20]", "10").contains("write a list of values"));
    assert!(refused("replications = 4", "replications = 0").contains("replications must be 1 to"));
    assert!(refused("goodput = \"70 %\"", "goodput = 70").contains("integer `70`"));
}

#[test]
fn what_is_to_be_drawn_is_drawn() {
    let plot = "[plot]\nx = 'videos'\ny = 'video.goodput_pct'\ntitle = 'How much is good'\n";
    let study = Study::parse(&[STUDY, plot].concat()).expect("valid");
    let points = study.run(&|_| {}).expect("it is one");
    let panel = study.plot.expect("it says so").panel(&points);
    let names: Vec<&str> = panel.lines.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["shb", "abd-weq"]);
    assert!(panel.lines.iter().all(|(_, spots)| spots.len() == 2 && spots[0].x == 10.0 && spots[1].ci > 0.0));
    let wrong = |from: &str, to: &str| {
        Study::parse(&[STUDY, &plot.replace(from, to)].concat()).expect_err(to).to_string()
    };
    assert!(wrong("'videos'", "'vidoes'").contains("possible are videos, policy"));
    assert!(wrong("goodput_pct", "goodptu").contains("goodput_pct, goodput_ci95_pct"));
}

#[test]
fn what_is_shipped_and_what_the_documents_write_are_studies() {
    Study::parse(include_str!("../../sim/scenarios/abd.toml")).expect("it is shipped");
    let page = include_str!("../../../docs/simulator.md");
    let pieces: Vec<&str> =
        page.split("```toml\n").skip(1).filter_map(|piece| piece.split("```").next()).collect();
    let [network, search, nodes] = pieces[..] else { panic!("there are {} pieces", pieces.len()) };
    assert_eq!(Study::parse(network).expect("it is one").points(), 6);
    let study = Study::parse(&[network, search].concat()).expect("it is one, too");
    assert!(study.search.is_some());
    assert_eq!(Study::parse(nodes).expect("it is one").points(), 1);
}
