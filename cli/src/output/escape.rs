//! Bytes as text that harms no terminal and no tool that works line by line.

use std::borrow::Cow;

/// Printable UTF-8 as it is; everything else, and the backslash, escaped: `\t`, `\n`, `\r`, `\\`, `\xff` for a byte, `\u{200b}` for
/// a character.
pub(crate) fn escaped(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && text.chars().all(is_plain)
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\\' => out.push_str("\\\\"),
                c if is_plain(c) => out.push(c),
                c if c.is_ascii() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
                c => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    Cow::Owned(out)
}

/// Printable, and neither invisible nor able to turn the direction of writing.
fn is_plain(c: char) -> bool {
    let invisible = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    c != '\\' && !c.is_control() && !invisible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_text_stays_as_it_is() {
        for text in ["", "plain text", "héllo ✓", "\"quoted\" it's", "e\u{301}"] {
            assert!(matches!(escaped(text.as_bytes()), Cow::Borrowed(t) if t == text), "{text}");
        }
    }

    #[test]
    fn everything_else_is_escaped() {
        for (bytes, shown) in [
            (&b"a\tb\nc\r"[..], "a\\tb\\nc\\r"),
            (b"\\", "\\\\"),
            (b"\x1b[31m\0\x7f", "\\x1b[31m\\x00\\x7f"),
            (b"\xff\xfeok\xc3", "\\xff\\xfeok\\xc3"),
            ("\u{202e}x\u{85}".as_bytes(), "\\u{202e}x\\u{85}"),
        ] {
            assert_eq!(escaped(bytes), shown);
        }
    }
}
