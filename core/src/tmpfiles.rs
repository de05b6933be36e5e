//! tmpfiles.d lines of a module -> declared paths.

use crate::module::{Declared, refusal};
use crate::name::HostPath;
use crate::problem::Problem;
use crate::resource::Kind;

/// Reads one `tmpfiles.d/*.conf`, given by its relative path in the module and its text.
///
/// Gives the declared paths, the lines below /run as they are to be installed, and what was refused with its line.
#[must_use]
pub fn parse(file: &str, text: &str) -> (Vec<Declared>, String, Vec<Problem>) {
    let mut declared: Vec<Declared> = Vec::new();
    let mut runtime = String::new();
    let mut problems = Vec::new();
    for (number, line) in (1u32..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let read = parse_line(line).and_then(|fields| match declared.iter().find(|other| other.path == fields.path) {
            Some(other) => Err(format!("{} is declared on line {} already", fields.path, other.line)),
            None => Ok(fields),
        });
        match read {
            Ok(Fields { kind, path, mode, user, group, target }) => {
                if path.as_str().starts_with("/run/") {
                    runtime.push_str(line);
                    runtime.push('\n');
                }
                declared.push(Declared { kind, path, mode, user, group, target, file: file.to_owned(), line: number });
            }
            Err(message) => problems.push(Problem::error(file, Some(number), message)),
        }
    }
    (declared, runtime, problems)
}

struct Fields {
    kind: Kind,
    path: HostPath,
    mode: Option<u32>,
    user: Option<String>,
    group: Option<String>,
    target: Option<String>,
}

fn parse_line(line: &str) -> Result<Fields, String> {
    let mut rest = line;
    let mut field = || -> Result<Option<String>, String> {
        let (word, after) = next_word(rest)?;
        rest = after;
        Ok(word.filter(|word| word != "-"))
    };
    let (word, path, mode, user, group, age) = (field()?, field()?, field()?, field()?, field()?, field()?);
    let argument = Some(rest.trim()).filter(|argument| !argument.is_empty() && *argument != "-");
    let kind = parse_kind(&word.unwrap_or_default())?;
    let path = parse_path(&path.ok_or("the line has no path")?)?;
    if let Some(age) = age {
        return Err(format!("the age \"{age}\" would remove data; write -"));
    }
    let target = match (kind, argument) {
        (Kind::Link, Some(target)) => Some(parse_target(target)?),
        (Kind::Link, None) => return Err("the link has no target".to_owned()),
        (_, Some(argument)) => {
            let what =
                if kind == Kind::File { "a file with content belongs to files/" } else { "a directory takes none" };
            return Err(format!("the argument \"{argument}\" is refused: {what}"));
        }
        (_, None) => None,
    };
    Ok(Fields { kind, path, mode: parse_mode(mode)?, user: parse_owner(user)?, group: parse_owner(group)?, target })
}

fn parse_kind(word: &str) -> Result<Kind, String> {
    match word {
        "d" => Ok(Kind::Directory),
        "f" => Ok(Kind::File),
        "L" => Ok(Kind::Link),
        _ if word.len() > 1 && word.starts_with(['d', 'f', 'L']) => {
            Err(format!("\"{word}\" has a modifier; only d, f and L without any are read"))
        }
        _ => Err(format!("the type \"{word}\" is refused; only d, f and L are read")),
    }
}

fn parse_path(text: &str) -> Result<HostPath, String> {
    let path = HostPath::new(text).map_err(|error| error.to_string())?;
    if text.split('/').any(|part| part == "..") {
        return Err(format!("\"{text}\" has \"..\" in it"));
    }
    no_specifier(text)?;
    match refusal(&path) {
        Some(clause) => Err(format!("{path} {clause}")),
        None if path.as_str() == "/run" => Err("/run is the system's".to_owned()),
        None => Ok(path),
    }
}

/// systemd takes the rest of the line as it is, quotes and all.
fn parse_target(text: &str) -> Result<String, String> {
    no_specifier(text)?;
    if text.starts_with(['"', '\'']) {
        return Err(format!("the target {text} would keep its quotes; write it without"));
    }
    Ok(text.to_owned())
}

fn parse_mode(mode: Option<String>) -> Result<Option<u32>, String> {
    let Some(text) = mode else { return Ok(None) };
    let octal = !text.is_empty() && text.len() <= 5 && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    match u32::from_str_radix(&text, 8) {
        Ok(value) if octal && value <= 0o7777 => Ok(Some(value)),
        _ => Err(format!("the mode \"{text}\" is refused: write up to four octal digits, as in 0750")),
    }
}

fn parse_owner(owner: Option<String>) -> Result<Option<String>, String> {
    let Some(text) = owner else { return Ok(None) };
    no_specifier(&text)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if !text.is_empty() && text.chars().all(plain) && !text.starts_with(['-', '.']) {
        Ok(Some(text))
    } else {
        Err(format!("\"{text}\" is no user or group: write a name or a number"))
    }
}

fn no_specifier(text: &str) -> Result<(), String> {
    if text.contains('%') { Err(format!("\"{text}\" has a specifier in it; write the value")) } else { Ok(()) }
}

/// The next word, unquoted and with C escapes taken out as in tmpfiles.d(5), and what follows it.
fn next_word(text: &str) -> Result<(Option<String>, &str), String> {
    let text = text.trim_start();
    if text.is_empty() {
        return Ok((None, text));
    }
    let mut word = String::new();
    let mut quote = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            ('\\', _) => word.push(escape(&mut chars)?),
            ('"' | '\'', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            (_, None) if c.is_whitespace() => return Ok((Some(word), &text[at..])),
            _ => word.push(c),
        }
    }
    match quote {
        Some(open) => Err(format!("the quote {open} is never closed")),
        None => Ok((Some(word), "")),
    }
}

fn escape(chars: &mut std::str::CharIndices<'_>) -> Result<char, String> {
    let mut next = || chars.next().map(|(_, c)| c);
    let hex = |c: Option<char>| c.and_then(|c| c.to_digit(16));
    match next() {
        Some(c @ ('\\' | '"' | '\'')) => Ok(c),
        Some('s') => Ok(' '),
        Some('t') => Ok('\t'),
        Some('x') => match (hex(next()), hex(next())) {
            (Some(high), Some(low)) if (1..0x80).contains(&(high * 16 + low)) => {
                char::from_u32(high * 16 + low).ok_or_else(|| "the escape \\x is no character".to_owned())
            }
            _ => Err("the escape \\x is refused: write two hex digits from 01 to 7f".to_owned()),
        },
        Some(other) => Err(format!("the escape \\{other} is refused; \\\\ \\\" \\' \\s \\t and \\xHH are read")),
        None => Err("the line ends in a backslash".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::resource::Kind;

    #[test]
    fn what_is_declared() {
        let text = "# comment\n\
                    ; comment\n\
                    \n\
                    d /srv/web 0750 web www -\n\
                    \x20 f /srv/web/log\n\
                    L /srv/web/current - - - - releases/one two\n\
                    d \"/srv/with space\" - 1000 1000\n\
                    d '/srv/a\\x2db\\sc' - -\n\
                    d /run/web 1777 - - -\n\
                    f /run/web/x 0600 - - - -\n";
        let (declared, runtime, problems) = parse("tmpfiles.d/web.conf", text);
        assert_eq!(problems, []);
        let seen: Vec<_> = declared
            .iter()
            .map(|one| (one.line, one.kind, one.path.as_str(), one.mode, one.user.as_deref(), one.target.as_deref()))
            .collect();
        assert_eq!(
            seen,
            [
                (4, Kind::Directory, "/srv/web", Some(0o750), Some("web"), None),
                (5, Kind::File, "/srv/web/log", None, None, None),
                (6, Kind::Link, "/srv/web/current", None, None, Some("releases/one two")),
                (7, Kind::Directory, "/srv/with space", None, Some("1000"), None),
                (8, Kind::Directory, "/srv/a-b c", None, None, None),
                (9, Kind::Directory, "/run/web", Some(0o1777), None, None),
                (10, Kind::File, "/run/web/x", Some(0o600), None, None),
            ]
        );
        assert_eq!(declared[0].group.as_deref(), Some("www"));
        assert_eq!(runtime, "d /run/web 1777 - - -\nf /run/web/x 0600 - - - -\n");
    }

    #[test]
    fn what_is_refused() {
        let cases = [
            ("d+ /srv/a", "\"d+\" has a modifier"),
            ("L+ /srv/a - - - - b", "\"L+\" has a modifier"),
            ("f! /srv/a", "modifier"),
            ("D /srv/a", "the type \"D\" is refused"),
            ("r /srv/a", "the type \"r\" is refused"),
            ("d", "no path"),
            ("d srv/a", "no absolute path"),
            ("d /srv/../etc", ".."),
            ("d /srv/%H", "specifier"),
            ("d /srv/a - %u", "specifier"),
            ("L /srv/a - - - - /x/%m", "specifier"),
            ("d /srv/a 0755 - - 10d", "the age \"10d\""),
            ("d /srv/a - - - - x", "argument \"x\""),
            ("f /srv/a - - - - text", "files/"),
            ("L /srv/a", "no target"),
            ("L /srv/a - - - - -", "no target"),
            ("L /srv/a - - - - \"/x\"", "quotes"),
            ("d /srv/a 0855", "mode \"0855\""),
            ("d /srv/a ~0755", "mode \"~0755\""),
            ("d /srv/a 077777", "mode"),
            ("d /srv/a - :root", "no user or group"),
            ("d /usr/a", "/usr"),
            ("d /etc/holdfast/x", "holdfast's own"),
            ("d /run", "/run"),
            ("d /var/run/a", "/run"),
            ("d \"/srv/a", "never closed"),
            ("d /srv/a\\q", "escape"),
            ("d /srv/a\\x00", "escape"),
            ("d /srv/one", "is declared on line 1 already"),
        ];
        for (line, word) in cases {
            let (declared, runtime, problems) = parse("t.conf", &format!("d /srv/one\n{line}\n"));
            assert_eq!((declared.len(), runtime.as_str()), (1, ""), "{line}");
            assert_eq!(problems.len(), 1, "{line}");
            assert_eq!((problems[0].file.as_str(), problems[0].line), ("t.conf", Some(2)), "{line}");
            assert!(problems[0].message.contains(word), "{line}: {}", problems[0]);
        }
    }
}
