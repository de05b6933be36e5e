//! Words of a value by systemd's quoting rules, which are not the shell's.

use thiserror::Error;

/// A value that cannot be split into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WordsError {
    /// A quote is opened and not closed.
    #[error("a quote is not closed")]
    OpenQuote,
    /// A backslash at the end.
    #[error("a backslash stands at the end")]
    OpenEscape,
    /// A backslash before something that it does not escape.
    #[error("\"\\{0}\" is no escape")]
    UnknownEscape(char),
}

/// Splits at blanks outside of single and double quotes; both kinds of quote are removed, and C-style escapes are
/// replaced inside and outside of them.
///
/// # Errors
/// [`WordsError`] for what systemd refuses, too.
pub fn split_words(value: &str) -> Result<Vec<String>, WordsError> {
    split(value, Ends::Strict)
}

/// The same as Podman splits arguments: an open quote or backslash at the end is closed in silence.
///
/// # Errors
/// [`WordsError::UnknownEscape`]; Podman then drops the whole value without a word.
pub fn relaxed_words(value: &str) -> Result<Vec<String>, WordsError> {
    split(value, Ends::Relaxed)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Strict,
    Relaxed,
}

fn split(value: &str, ends: Ends) -> Result<Vec<String>, WordsError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match unescape(&mut rest) {
                Ok(c) => word.get_or_insert_default().push(c),
                Err(WordsError::OpenEscape) if ends == Ends::Relaxed => {}
                Err(error) => return Err(error),
            },
            _ if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ' ' | '\t' | '\n' | '\r' if quote.is_none() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() && ends == Ends::Strict {
        return Err(WordsError::OpenQuote);
    }
    words.extend(word);
    Ok(words)
}

/// What the characters after a backslash stand for.
fn unescape(rest: &mut std::str::Chars<'_>) -> Result<char, WordsError> {
    let c = rest.next().ok_or(WordsError::OpenEscape)?;
    let plain = match c {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        's' => ' ',
        '\\' | '"' | '\'' => c,
        'x' => return number(rest, c, 2, 16),
        'u' => return number(rest, c, 4, 16),
        'U' => return number(rest, c, 8, 16),
        '0'..='7' => {
            // The first digit belongs to the number.
            let mut digits = c.to_string();
            digits.extend(rest.by_ref().take(2));
            return code_point(&digits, c, 3, 8);
        }
        other => return Err(WordsError::UnknownEscape(other)),
    };
    Ok(plain)
}

fn number(rest: &mut std::str::Chars<'_>, kind: char, length: usize, radix: u32) -> Result<char, WordsError> {
    let digits: String = rest.by_ref().take(length).collect();
    code_point(&digits, kind, length, radix)
}

fn code_point(digits: &str, kind: char, length: usize, radix: u32) -> Result<char, WordsError> {
    let all_digits = digits.len() == length && digits.chars().all(|c| c.is_digit(radix));
    let code = u32::from_str_radix(digits, radix).ok().filter(|code| all_digits && *code != 0);
    let in_range = |code: &u32| radix != 8 || *code <= 255;
    code.filter(in_range).and_then(char::from_u32).ok_or(WordsError::UnknownEscape(kind))
}
