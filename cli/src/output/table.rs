//! Columns for people.

use std::io::{self, Write};

/// Rows under a line of titles. Columns of numbers lean to the right.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

impl Table {
    /// A title that begins with `>` is that of a column of numbers.
    pub(super) fn new(titles: &[&str]) -> Self {
        let right = titles.iter().map(|t| t.starts_with('>')).collect();
        Self { rows: vec![titles.iter().map(|t| t.trim_start_matches('>').to_owned()).collect()], right }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let width = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max();
        let widths: Vec<usize> = (0..self.right.len()).map(|column| width(column).unwrap_or(0)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), right) in row.iter().zip(&widths).zip(&self.right) {
                if !line.is_empty() {
                    line.push_str("  ");
                }
                line.push_str(&if *right { format!("{cell:>width$}") } else { format!("{cell:<width$}") });
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_their_titles() {
        let mut table = Table::new(&["NAME", ">LAG", "STATE"]);
        table.row(vec!["é".to_owned(), "1".to_owned(), String::new()]);
        table.row(vec!["longer".to_owned(), "12345".to_owned(), "ok".to_owned()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "NAME      LAG  STATE\né           1\nlonger  12345  ok\n");
    }
}
