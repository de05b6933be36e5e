//! Foreign text made safe to print: nothing in it can move the cursor, change a line, or turn the reading direction.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The same text with control characters, invisible and direction-changing ones written out: `\n`, `\x1b`, `\u{202e}`.
///
/// A backslash stays as it is: systemd's unit names have them (`srv-my\x2ddata.mount`) and must stay copyable.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(must_not_print) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Writing to a String cannot fail.
        let written = match c {
            '\n' => safe.write_str("\\n"),
            '\r' => safe.write_str("\\r"),
            '\t' => safe.write_str("\\t"),
            c if !must_not_print(c) => safe.write_char(c),
            c if u32::from(c) < 0x80 => write!(safe, "\\x{:02x}", u32::from(c)),
            c => write!(safe, "\\u{{{:x}}}", u32::from(c)),
        };
        debug_assert!(written.is_ok());
    }
    Cow::Owned(safe)
}

fn must_not_print(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn what_could_deceive_is_written_out() {
        for (text, safe) in [
            ("container/web", "container/web"),
            (r"srv-my\x2ddata.mount", r"srv-my\x2ddata.mount"),
            ("Grüße 日本", "Grüße 日本"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{1b}[31mred\u{7f}", "\\x1b[31mred\\x7f"),
            ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
            ("a\u{200b}b\u{feff}\u{85}\u{2028}", "a\\u{200b}b\\u{feff}\\u{85}\\u{2028}"),
            ("\0", "\\x00"),
        ] {
            assert_eq!(escape(text), safe);
        }
    }
}
