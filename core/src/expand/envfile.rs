//! The text of an `EnvironmentFile=` -> names and values, by systemd's rules (no `export`, no `$` inside).

/// All assignments in their order. A line without `=` says nothing.
pub(super) fn parse(text: &str) -> Vec<(String, String)> {
    let mut reader = Reader::default();
    for c in text.chars().filter(|c| *c != '\r') {
        reader.take(c);
    }
    reader.take('\n');
    reader.found
}

#[derive(Default)]
struct Reader {
    found: Vec<(String, String)>,
    state: State,
    key: String,
    value: String,
    /// How much of the value a blank at its end must not take away: what was quoted or escaped.
    kept: usize,
}

#[derive(Default, Clone, Copy)]
enum State {
    #[default]
    Start,
    Comment,
    CommentEscape,
    Key,
    BeforeValue,
    Value,
    ValueEscape,
    Single,
    Double,
    DoubleEscape,
}

impl Reader {
    fn take(&mut self, c: char) {
        self.state = match (self.state, c) {
            (State::Start, '#' | ';') => State::Comment,
            (State::Start, c) if c.is_whitespace() => State::Start,
            (State::Comment, '\\') => State::CommentEscape,
            (State::Comment | State::Key, '\n') => self.forget(),
            (State::Comment | State::CommentEscape, _) => State::Comment,
            (State::Key, '=') => State::BeforeValue,
            (State::Start | State::Key, c) => {
                self.key.push(c);
                State::Key
            }
            (State::BeforeValue | State::Value, '\n') => self.finish(),
            (State::BeforeValue | State::Value, '\\') => State::ValueEscape,
            (State::BeforeValue, '\'') => State::Single,
            (State::BeforeValue, '"') => State::Double,
            (State::BeforeValue, ' ' | '\t') => State::BeforeValue,
            (State::BeforeValue | State::Value, c) => {
                self.value.push(c);
                State::Value
            }
            (State::ValueEscape, '\n') => State::Value,
            (State::ValueEscape, c) => {
                self.keep(c);
                State::Value
            }
            (State::Single, '\'') | (State::Double, '"') => State::BeforeValue,
            (State::Double, '\\') => State::DoubleEscape,
            (State::Single | State::Double, c) => {
                self.keep(c);
                self.state
            }
            (State::DoubleEscape, '\n') => State::Double,
            (State::DoubleEscape, c) => {
                if !matches!(c, '"' | '\\' | '`' | '$') {
                    self.keep('\\');
                }
                self.keep(c);
                State::Double
            }
        };
    }

    fn keep(&mut self, c: char) {
        self.value.push(c);
        self.kept = self.value.len();
    }

    fn forget(&mut self) -> State {
        self.key.clear();
        State::Start
    }

    fn finish(&mut self) -> State {
        let end = self.value.trim_end().len().max(self.kept);
        let key = std::mem::take(&mut self.key);
        self.found.push((key.trim_end().to_owned(), self.value[..end].to_owned()));
        self.value.clear();
        self.kept = 0;
        State::Start
    }
}
