//! Columns of text.

use std::fmt::Write as _;

/// Lines whose columns are as wide as their widest cell, two blanks apart and two at the front; the
/// last column is as long as it is.
pub(super) fn table<const N: usize>(out: &mut String, rows: &[[String; N]]) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in rows {
        let mut line = String::from("  ");
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a String cannot fail.
            let _ = write!(line, "{cell:<width$}  ");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}
