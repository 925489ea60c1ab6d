//! Bars on standard error for work that takes long. They show themselves only where that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// How much of so many bytes was read, or of an unknown number.
pub(crate) fn bytes(all: Option<u64>) -> ProgressBar {
    match all {
        Some(all) => styled(ProgressBar::new(all), "{wide_bar} {bytes}/{total_bytes}, {eta} left"),
        None => styled(ProgressBar::new_spinner(), "{spinner} {bytes} read, {bytes_per_sec}"),
    }
}

/// How many messages of so many, or of an unknown number; with what happened to them.
pub(crate) fn messages(all: Option<u64>, what: &'static str) -> ProgressBar {
    let bar = match all {
        Some(all) => styled(ProgressBar::new(all), "{wide_bar} {human_pos}/{human_len} {msg}, {eta} left"),
        None => styled(ProgressBar::new_spinner(), "{spinner} {human_pos} {msg} in {elapsed}"),
    };
    bar.with_message(what)
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
