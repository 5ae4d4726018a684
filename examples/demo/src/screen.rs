//! Where frames go: over one another on a terminal, below one another elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crate::acts::{ACTS, LENGTH};
use crate::frame;
use crate::moment::Moment;
use crate::style::Style;

#[derive(Debug)]
pub(crate) struct Screen {
    style: Style,
    /// Frames are drawn over one another.
    live: bool,
    /// How many lines the last frame had.
    drawn: usize,
}

impl Screen {
    /// The standard output, drawn on live if it is a terminal and there is time.
    pub(crate) fn of_stdout(fast: bool) -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = io::stdout().is_terminal() && !is_dumb;
        let style = Style { colours: terminal && !is_set("NO_COLOR") };
        Self { style, live: terminal && !fast, drawn: 0 }
    }

    pub(crate) fn style(&self) -> Style {
        self.style
    }

    /// When to show something before the end: often, or once an act.
    pub(crate) fn times(&self) -> Vec<Duration> {
        /// Not in step with the refill, or every frame would find it at the same point.
        const OFTEN: Duration = Duration::from_millis(90);
        if self.live {
            let times = (0..).map(|frame| OFTEN * frame);
            return times.take_while(|time| *time < LENGTH).collect();
        }
        // Shortly before the end of an act, when all of it has been seen.
        let almost = |until: Duration| until.saturating_sub(Duration::from_millis(50));
        ACTS.iter().map(|act| act.until).filter(|until| *until < LENGTH).map(almost).collect()
    }

    pub(crate) fn show(&mut self, moment: &Moment) -> io::Result<()> {
        let lines = frame::lines(moment, self.style);
        let text = if self.live { self.over_the_last(&lines) } else { below_the_last(&lines) };
        self.drawn = lines.len();
        self.write(&text)
    }

    /// The lines where the last frame's are. What is too long for a narrow terminal
    /// is cut off: were it wrapped, there would be more lines than are counted.
    fn over_the_last(&self, lines: &[String]) -> String {
        const NO_WRAP: &str = "\x1b[?7l";
        const WRAP: &str = "\x1b[?7h";
        const CLEAR_REST: &str = "\x1b[K";
        let up = match self.drawn {
            0 => "\n".to_owned(),
            drawn => format!("\x1b[{drawn}A"),
        };
        let text: String = lines.iter().map(|line| format!("{line}{CLEAR_REST}\n")).collect();
        format!("{NO_WRAP}{up}{text}{WRAP}")
    }

    /// Writes at once, so that no half of a frame is seen.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }
}

fn below_the_last(lines: &[String]) -> String {
    format!("\n{}\n", lines.join("\n"))
}
