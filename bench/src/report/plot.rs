//! Plots as SVG: bars, and lines. Written by hand, since no more is needed.

use std::fmt::Write;

/// Names with values: a bar each, or a line through the values.
#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// A diagram with axes. Both are logarithmic where `log` says so.
#[derive(Clone, Debug)]
pub struct Plot {
    pub title: String,
    pub x: String,
    pub y: String,
    /// What stands below the x axis, with its place; empty: powers of ten.
    pub marks: Vec<(f64, String)>,
    pub log_x: bool,
    pub series: Vec<Series>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 60.0;
/// Told apart by people who do not see all colours, too.
const COLOURS: [&str; 8] = ["#000000", "#0072b2", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#999933"];

/// Writing into a string cannot fail.
macro_rules! put {
    ($($arg:tt)*) => { let _ = writeln!($($arg)*); };
}

impl Plot {
    /// Lines with a dot at each value; y is logarithmic.
    #[must_use]
    pub fn lines(&self) -> String {
        let mut text = self.frame();
        for (number, series) in self.series.iter().enumerate() {
            let colour = COLOURS.get(number % COLOURS.len()).unwrap_or(&"#000000");
            let at: Vec<_> = series.points.iter().map(|(x, y)| (self.across(*x), self.up(*y))).collect();
            let path: Vec<_> = at.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            put!(text, "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>", path.join(" "));
            for (x, y) in at {
                put!(text, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
            }
            self.legend(&mut text, number, &series.name, colour);
        }
        text + "</svg>\n"
    }

    /// A group of bars at each x, a bar for each series; y is logarithmic.
    #[must_use]
    pub fn bars(&self) -> String {
        let mut text = self.frame();
        let groups = self.marks.len().max(1) as f64;
        let width = (WIDTH - LEFT - RIGHT) / groups * 0.8 / self.series.len().max(1) as f64;
        for (number, series) in self.series.iter().enumerate() {
            let colour = COLOURS.get(number % COLOURS.len()).unwrap_or(&"#000000");
            let shift = (number as f64 - self.series.len() as f64 / 2.0) * width;
            for (x, y) in &series.points {
                let (left, top) = (self.across(*x) + shift, self.up(*y));
                let height = HEIGHT - BOTTOM - top;
                put!(
                    text,
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>",
                    width * 0.9
                );
            }
            self.legend(&mut text, number, &series.name, colour);
        }
        text + "</svg>\n"
    }

    /// Background, title, axes and their marks.
    fn frame(&self) -> String {
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        put!(text, "<text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>", escaped(&self.title));
        let (low, high) = self.decades();
        for decade in low..=high {
            let y = self.up(10f64.powi(decade));
            put!(text, "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>");
            put!(text, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", LEFT - 6.0, y + 4.0, power(decade));
        }
        for (x, mark) in &self.marks {
            let x = self.across(*x);
            put!(text, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>", floor + 18.0, escaped(mark));
        }
        put!(text, "<line x1=\"{LEFT}\" y1=\"{floor}\" x2=\"{right}\" y2=\"{floor}\" stroke=\"black\"/>");
        put!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 14.0,
            escaped(&self.x)
        );
        let middle = (TOP + floor) / 2.0;
        put!(
            text,
            "<text x=\"18\" y=\"{middle}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {middle})\">{}</text>",
            escaped(&self.y)
        );
        text
    }

    fn legend(&self, text: &mut String, number: usize, name: &str, colour: &str) {
        let y = TOP + 10.0 + 20.0 * number as f64;
        let x = WIDTH - RIGHT + 15.0;
        put!(text, "<rect x=\"{x}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>", y - 10.0);
        put!(text, "<text x=\"{}\" y=\"{y}\">{}</text>", x + 18.0, escaped(name));
    }

    fn across(&self, x: f64) -> f64 {
        let scaled = |x: f64| if self.log_x { x.max(1.0).log10() } else { x };
        let all = self.series.iter().flat_map(|series| series.points.iter().map(|point| point.0));
        let all = all.chain(self.marks.iter().map(|mark| mark.0)).map(scaled);
        let (low, high) = all.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
        // Room for half a group on both sides.
        let (low, high) = (low - 0.5, high + 0.5);
        LEFT + (scaled(x) - low) / (high - low).max(f64::EPSILON) * (WIDTH - LEFT - RIGHT)
    }

    fn up(&self, y: f64) -> f64 {
        let (low, high) = self.decades();
        let share = (y.max(10f64.powi(low)).log10() - f64::from(low)) / f64::from(high - low);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    /// The powers of ten between which all positive values are.
    fn decades(&self) -> (i32, i32) {
        let values = self.series.iter().flat_map(|series| series.points.iter().map(|point| point.1)).filter(|y| *y > 0.0);
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), y| (low.min(y), high.max(y)));
        if low > high {
            return (0, 1);
        }
        let low = low.log10().floor() as i32;
        (low, (high.log10().ceil() as i32).max(low + 1))
    }
}

fn power(decade: i32) -> String {
    match decade {
        6.. => format!("{} M", 10f64.powi(decade - 6)),
        3..6 => format!("{} k", 10f64.powi(decade - 3)),
        _ => format!("{}", 10f64.powi(decade)),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_all_its_series_within_its_frame() {
        let series = |name: &str, points: &[(f64, f64)]| Series { name: name.to_owned(), points: points.to_vec() };
        let plot = Plot {
            title: "a < b".to_owned(),
            x: "x".to_owned(),
            y: "y".to_owned(),
            marks: vec![(0.0, "one".to_owned()), (1.0, "two".to_owned())],
            log_x: false,
            series: vec![series("first", &[(0.0, 3.0), (1.0, 40_000.0)]), series("second", &[(0.0, 0.0)])],
        };
        assert_eq!(plot.decades(), (0, 5));
        for text in [plot.bars(), plot.lines()] {
            assert!(text.contains("a &lt; b") && text.contains("first") && text.contains("second") && text.ends_with("</svg>\n"));
            assert!(!text.contains("NaN") && !text.contains("inf"));
        }
        assert!((TOP..=HEIGHT - BOTTOM).contains(&plot.up(40_000.0)) && plot.up(0.0) == HEIGHT - BOTTOM);
    }
}
