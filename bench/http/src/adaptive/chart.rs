//! The picture of the documentation: an overload, second by second, as SVG.

use std::fmt::Write as _;

use super::lane::{Lane, Round};
use super::plan::{LITTLE, MUCH};
use super::subject::Limit;

/// Of the whole picture.
const WIDTH: f64 = 880.0;
const HEIGHT: f64 = 540.0;
/// Where time is drawn.
const LEFT: f64 = 72.0;
const RIGHT: f64 = 24.0;
const BOTTOM: f64 = 490.0;

/// Colours for light and dark pages, and for print.
const STYLE: &str = "\
text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;fill:#424a53}
.page{fill:#fff;stroke:#d0d7de}.title{font-size:18px;font-weight:600;fill:#1f2328}
.head{font-size:14px;font-weight:600;fill:#1f2328}.grid{stroke:#d8dee4}.axis{stroke:#8c959f}
.band{fill:#fff1e5}.mark{stroke:#57606a;stroke-dasharray:5 4}
.line{fill:none;stroke-width:2.5;stroke-linejoin:round;stroke-linecap:round}
.with{stroke:#0969da}.without{stroke:#c4490a}.with-text{fill:#0969da;font-weight:600}
.without-text{fill:#c4490a;font-weight:600}.band-text{fill:#953800;font-weight:600}
@media(prefers-color-scheme:dark){text{fill:#adb6c0}.page{fill:#0d1117;stroke:#30363d}
.title,.head{fill:#f0f6fc}.grid{stroke:#262c34}.axis{stroke:#6e7681}.band{fill:#2b1d10}
.mark{stroke:#8b949e}.with{stroke:#58a6ff}.without{stroke:#f0883e}.with-text{fill:#58a6ff}
.without-text{fill:#f0883e}.band-text{fill:#f2a76b}}
";

/// The services with and without a limit, if both were measured.
pub fn picture(lanes: &[Lane]) -> Option<String> {
    let lane =
        |limit| lanes.iter().find(|lane| lane.subject.is_drawn() && lane.subject.limit == limit);
    let (with, without) = (lane(Limit::Auto)?, lane(Limit::None)?);
    let round = with.rounds.last()?;
    let both = [Line::of(without, "without", round), Line::of(with, "with", round)];
    let seconds = f64::from(with.plan.seconds());
    let time = Scale { from: 0.0, to: seconds, start: LEFT, end: WIDTH - RIGHT };
    let mut svg = Svg::begin(round);
    let overload = f64::from(with.plan.before)..f64::from(with.plan.end());
    let capacity = round.baseline.capacity;
    let top = (capacity * 1.25 / 50.0).ceil() * 50.0;
    let useful = Panel {
        time,
        values: Scale { from: 0.0, to: top, start: 280.0, end: 108.0 },
        head: format!("Answers in time, per second (within {:.0} ms)", round.baseline.deadline()),
        ticks: (0..).map(|tick| f64::from(tick) * 50.0).take_while(|tick| *tick <= top).collect(),
        is_log: false,
    };
    useful.frame(&mut svg, overload.clone());
    useful.mark(&mut svg, capacity, &format!("capacity: {capacity:.0}"));
    let late = Panel {
        time,
        values: Scale { from: 0.0, to: 4.0, start: BOTTOM, end: 332.0 },
        head: "Latency: 99 of 100 answers are faster".to_owned(),
        ticks: vec![1.0, 10.0, 100.0, 1000.0, 10_000.0],
        is_log: true,
    };
    late.frame(&mut svg, overload.clone());
    for line in &both {
        useful.line(&mut svg, line.class, &line.useful);
        late.line(&mut svg, line.class, &line.p99);
    }
    load(&mut svg, time, &overload);
    time_axis(&mut svg, time, BOTTOM);
    Some(svg.end())
}

/// Says how much is asked for, in each part.
fn load(svg: &mut Svg, time: Scale, overload: &std::ops::Range<f64>) {
    let parts = [
        (time.from, overload.start, LITTLE, ""),
        (overload.start, overload.end, MUCH, "band-text"),
        (overload.end, time.to, LITTLE, ""),
    ];
    for (from, to, load, class) in parts {
        let label = format!("load: {load} × capacity");
        svg.text(time.place((from + to) / 2.0), 128.0, class, "middle", &label);
    }
}

/// A series of each second.
struct Line {
    class: &'static str,
    useful: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
}

impl Line {
    fn of(lane: &Lane, class: &'static str, round: &Round) -> Self {
        let second = |second: u32| {
            let from = f64::from(second);
            lane.samples.within(from..from + 1.0, round.baseline.deadline())
        };
        let seconds: Vec<_> = (0..lane.plan.seconds()).map(second).collect();
        let useful = seconds.iter().map(|second| Some(second.useful)).collect();
        let p99 = seconds.iter().map(|second| (second.served > 0.0).then_some(second.p99));
        Self { class, useful, p99: p99.collect() }
    }
}

/// Numbers along a line.
#[derive(Clone, Copy)]
struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Scale {
    fn place(&self, value: f64) -> f64 {
        let share = (value.clamp(self.from, self.to) - self.from) / (self.to - self.from);
        self.start + share * (self.end - self.start)
    }
}

struct Panel {
    time: Scale,
    values: Scale,
    head: String,
    ticks: Vec<f64>,
    /// Whether the scale is of logarithms.
    is_log: bool,
}

impl Panel {
    fn y(&self, value: f64) -> f64 {
        self.values.place(if self.is_log { value.max(1e-3).log10() } else { value })
    }

    fn frame(&self, svg: &mut Svg, band: std::ops::Range<f64>) {
        let (left, right) = (self.time.place(band.start), self.time.place(band.end));
        let (top, bottom) = (self.values.end, self.values.start);
        svg.rect("band", [left, top, right - left, bottom - top]);
        svg.text(LEFT, top - 14.0, "head", "start", &self.head);
        for tick in &self.ticks {
            let y = self.y(*tick);
            let class = if *tick == self.ticks[0] { "axis" } else { "grid" };
            svg.line(class, [LEFT, y, WIDTH - RIGHT, y]);
            let label = if self.is_log { millis(*tick) } else { format!("{tick:.0}") };
            svg.text(LEFT - 8.0, y + 4.5, "", "end", &label);
        }
    }

    fn mark(&self, svg: &mut Svg, value: f64, label: &str) {
        let y = self.y(value);
        svg.line("mark", [LEFT, y, WIDTH - RIGHT, y]);
        svg.text(WIDTH - RIGHT - 4.0, y + 17.0, "", "end", label);
    }

    /// A value in the middle of each second; where there is none, the line is broken.
    fn line(&self, svg: &mut Svg, class: &str, values: &[Option<f64>]) {
        let mut path = String::new();
        let mut is_drawn = false;
        for (second, value) in values.iter().enumerate() {
            if let Some(value) = value {
                let (x, y) = (self.time.place(second as f64 + 0.5), self.y(*value));
                let _ = write!(path, "{}{x:.1} {y:.1}", if is_drawn { "L" } else { "M" });
            }
            is_drawn = value.is_some();
        }
        let _ = writeln!(svg.0, "<path class=\"line {class}\" d=\"{path}\"/>");
    }
}

fn millis(value: f64) -> String {
    if value < 1000.0 { format!("{value:.0} ms") } else { format!("{:.0} s", value / 1000.0) }
}

fn time_axis(svg: &mut Svg, time: Scale, y: f64) {
    for tick in (0..).map(|tick| f64::from(tick) * 10.0).take_while(|tick| *tick <= time.to) {
        let x = time.place(tick);
        svg.line("axis", [x, y, x, y + 5.0]);
        svg.text(x, y + 21.0, "", "middle", &format!("{tick:.0}"));
    }
    svg.text((time.start + time.end) / 2.0, y + 38.0, "", "middle", "seconds");
}

/// Text of a picture.
struct Svg(String);

impl Svg {
    fn begin(round: &Round) -> Self {
        let mut svg = Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-labelledby=\"title description\">\n<title id=\"title\">A service under overload, \
             with and without an adaptive limit</title>\n<desc id=\"description\">Answers in time \
             per second, and the 99th percentile of latency, over one minute. The service can answer \
             {:.0} requests per second, and is asked for five times as many in the middle.</desc>\n\
             <style>\n{STYLE}</style>\n",
            round.baseline.capacity
        ));
        svg.rect("page", [0.5, 0.5, WIDTH - 1.0, HEIGHT - 1.0]);
        svg.text(LEFT, 40.0, "title", "start", "A service that is asked for more than it can do");
        for (y, class, label) in
            [(30.0, "with", "with an adaptive limit"), (52.0, "without", "without")]
        {
            svg.line(&format!("line {class}"), [634.0, y, 662.0, y]);
            svg.text(670.0, y + 4.5, &format!("{class}-text"), "start", label);
        }
        svg
    }

    fn rect(&mut self, class: &str, [x, y, width, height]: [f64; 4]) {
        let radius = if class == "page" { " rx=\"6\"" } else { "" };
        let _ = writeln!(
            self.0,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"{radius}/>"
        );
    }

    fn line(&mut self, class: &str, [x1, y1, x2, y2]: [f64; 4]) {
        let _ = writeln!(
            self.0,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    fn text(&mut self, x: f64, y: f64, class: &str, anchor: &str, text: &str) {
        let _ = writeln!(
            self.0,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    fn end(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::lane::Baseline;
    use super::super::plan::Plan;
    use super::super::samples::{Event, Samples, Summary};
    use super::super::subject::{Place, Subject};
    use super::*;

    /// A service that answers so many requests per second, each after so many milliseconds, in each
    /// second.
    fn lane(limit: Limit, of_second: impl Fn(u32) -> (u32, f64)) -> Lane {
        let mut lane = Lane::new(Subject::new(Place::Axum, limit), Plan::DRAWN);
        let baseline = Baseline { capacity: 190.0, p50: 5.2, p99: 6.0 };
        lane.rounds.push(Round { baseline, overload: Summary::default(), recovery: 0.0 });
        let events = (0..Plan::DRAWN.seconds()).flat_map(|second| {
            let (count, latency) = of_second(second);
            let at = f64::from(second) + 0.5;
            (0..count).map(move |_| Event::Served { at, latency })
        });
        lane.samples = Samples(events.collect());
        lane
    }

    #[test]
    fn a_picture_is_small_whole_and_has_a_line_for_each_service() {
        let is_overload = |second: u32| (15..40).contains(&second);
        let with =
            lane(Limit::Auto, |second| if is_overload(second) { (185, 16.0) } else { (95, 6.0) });
        let without = lane(Limit::None, |second| match second {
            16..20 => (0, 0.0),
            20..44 => (150, 2500.0),
            _ => (95, 6.0),
        });
        let picture = picture(&[with, without]).unwrap();
        assert!(picture.len() < 60_000, "{} bytes", picture.len());
        assert_eq!(picture.matches("<path class=\"line with\"").count(), 2);
        assert_eq!(picture.matches("<path class=\"line without\"").count(), 2);
        assert_eq!(picture.matches('M').count(), 5, "a line is broken where nothing is served");
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        assert!(!picture.contains("<script") && picture.ends_with("</svg>\n"));
        assert!(super::picture(&[]).is_none());
    }
}
