//! The matrix in Markdown.

use std::fmt::Write;

use super::Case;
use super::outcomes::{Outcomes, Sum};

/// The languages and dialects that there should be lines of; everything else in the tables comes from the file.
const LANGUAGES: [&str; 10] = ["python", "thriftpy2", "java", "go", "node", "cpp", "php", "ruby", "perl", "rust"];
const DIALECTS: [(&str, &str); 4] =
    [("buffered", "binary"), ("framed", "binary"), ("buffered", "compact"), ("framed", "compact")];

/// The tables, and whether all that was wanted was run and passed.
#[must_use]
pub fn print(outcomes: &Outcomes) -> (String, bool) {
    let mut page = Page { outcomes, text: String::new(), count: Count::default() };
    page.table("Consumers: the library's servers, called by the broker", &Case::CONSUMER);
    page.table("Producers: the library's clients, at the broker's gateway", &Case::PRODUCER);
    page.examples();
    page.absent();
    let Count { passed, failed, unrun } = page.count;
    let _ = writeln!(
        page.text,
        "A number says how many servers of the library passed. In all: {passed} cells passed, {failed} failed, {unrun} were not run."
    );
    (page.text, failed == 0 && unrun == 0)
}

#[derive(Default)]
struct Count {
    passed: usize,
    failed: usize,
    unrun: usize,
}

struct Page<'a> {
    outcomes: &'a Outcomes,
    text: String,
    count: Count,
}

impl Page<'_> {
    fn row(&mut self, words: &[String]) {
        let _ = writeln!(self.text, "| {} |", words.join(" | "));
    }

    fn head(&mut self, title: &str, columns: &[&str]) {
        let _ = writeln!(self.text, "### {title}\n");
        self.row(&columns.iter().map(|column| (*column).to_owned()).collect::<Vec<_>>());
        self.row(&vec!["---".to_owned(); columns.len()]);
    }

    fn table(&mut self, title: &str, cases: &[Case]) {
        let columns: Vec<&str> =
            ["language", "transport", "protocol"].into_iter().chain(cases.iter().map(|case| case.name())).collect();
        self.head(title, &columns);
        for language in LANGUAGES {
            for (transport, protocol) in DIALECTS {
                if self.outcomes.is_absent(language, transport, protocol) {
                    continue;
                }
                let mut row = vec![language.to_owned(), transport.to_owned(), protocol.to_owned()];
                row.extend(cases.iter().map(|case| self.cell(language, transport, protocol, *case)));
                self.row(&row);
            }
        }
        self.text.push('\n');
    }

    /// They speak one dialect each.
    fn examples(&mut self) {
        let columns: Vec<&str> = ["language"].into_iter().chain(Case::EXAMPLE.map(Case::name)).collect();
        self.head("Examples: those of `clients/`, as a user runs and copies them", &columns);
        let (transport, protocol) = DIALECTS[0];
        for language in LANGUAGES {
            let cells = Case::EXAMPLE.map(|case| self.cell(language, transport, protocol, case));
            self.row(&[&[language.to_owned()], &cells[..]].concat());
        }
        self.text.push('\n');
    }

    fn absent(&mut self) {
        for language in LANGUAGES {
            let none: Vec<String> = DIALECTS
                .iter()
                .filter(|(transport, protocol)| self.outcomes.is_absent(language, transport, protocol))
                .map(|(transport, protocol)| format!("{transport} {protocol}"))
                .collect();
            if !none.is_empty() {
                let _ = writeln!(self.text, "The library of {language} does not speak {}.\n", none.join(" and "));
            }
        }
    }

    fn cell(&mut self, language: &str, transport: &str, protocol: &str, case: Case) -> String {
        let Some(sum) = self.outcomes.of(language, transport, protocol, case.name()) else {
            self.count.unrun += 1;
            return "not run".to_owned();
        };
        let Sum { passed, failed, unended } = sum;
        if failed.is_empty() && unended.is_empty() {
            self.count.passed += 1;
            return if passed == 1 { "ok".to_owned() } else { format!("ok, {passed}") };
        }
        self.count.failed += 1;
        let mut words = Vec::new();
        if !failed.is_empty() {
            words.push(format!("**failed**: {}", failed.join(", ")));
        }
        if !unended.is_empty() {
            words.push(format!("**did not end**: {}", unended.join(", ")));
        }
        words.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stands_in_it_but_what_was_run() {
        let line = |words: [&str; 6]| words.join("\t") + "\n";
        let text = [
            line(["java", "pool", "buffered", "binary", "3 MiB", "began"]),
            line(["java", "pool", "buffered", "binary", "3 MiB", "passed"]),
            line(["java", "simple", "buffered", "binary", "3 MiB", "began"]),
            line(["java", "simple", "buffered", "binary", "3 MiB", "passed"]),
            line(["java", "pool", "framed", "binary", "3 MiB", "began"]),
            line(["java", "pool", "framed", "binary", "3 MiB", "failed"]),
            line(["java", "pool", "framed", "binary", "3 MiB", "began"]),
            line(["java", "pool", "framed", "binary", "3 MiB", "passed"]),
            line(["java", "pool", "buffered", "compact", "3 MiB", "began"]),
            line(["perl", "-", "buffered", "compact", "-", "absent"]),
        ]
        .concat();
        let (page, is_whole) = print(&Outcomes::parse(&text));
        let row = |begin: &str| page.lines().find(|line| line.starts_with(begin)).map(str::to_owned);
        let large = |begin: &str| row(begin).unwrap().split(" | ").nth(4).unwrap().to_owned();
        assert_eq!(large("| java | buffered | binary"), "ok, 2");
        assert_eq!(large("| java | framed | binary"), "**failed**: pool");
        assert_eq!(large("| java | buffered | compact"), "**did not end**: pool");
        assert_eq!(large("| java | framed | compact"), "not run");
        assert_eq!(row("| perl | buffered | compact"), None);
        assert!(page.contains("The library of perl does not speak buffered compact."), "{page}");
        assert!(!is_whole && page.contains("1 cells passed, 2 failed, "), "{page}");
    }
}
