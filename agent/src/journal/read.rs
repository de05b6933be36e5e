//! Reports back from the journal, through `journalctl -o json`: no library reads it without C or the GPL.

use std::process::Stdio;
use std::time::Duration;

use holdfast_core::record::{Fields, Message, Summary, summaries};
use serde_json::Value;
use tokio::process::Command;

use super::{Journal, JournalError};

/// How long journalctl may take: a journal of many gigabytes on a slow disk answers within seconds.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);

/// The end of the year 9999, in seconds since 1970.
const LATEST: u64 = 253_402_300_799;

impl Journal {
    /// The entries of one report, as root wrote them: for `holdfast_core::record::rebuild`. Empty when there are none.
    ///
    /// # Errors
    /// [`JournalError`] when the id is none or the journal cannot be read.
    pub async fn read(report_id: &str) -> Result<Vec<Fields>, JournalError> {
        // The id becomes part of a match, and must not become another one.
        if report_id.len() != 32 || !report_id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return Err(JournalError::ReportId(report_id.to_owned()));
        }
        journalctl(&[format!("HOLDFAST_REPORT_ID={report_id}")]).await
    }

    /// Reports that began or ended since then (microseconds since 1970), the newest first, at most `max`.
    ///
    /// # Errors
    /// [`JournalError`] when the journal cannot be read.
    pub async fn list(since_usec: Option<u64>, max: usize) -> Result<Vec<Summary>, JournalError> {
        let message_id = |message: Message| format!("MESSAGE_ID={}", message.id());
        // Two entries a report, and the newest first: one more, lest the last one be only half seen.
        let lines = max.saturating_mul(2).saturating_add(1);
        let mut arguments = vec!["--reverse".to_owned(), format!("--lines={lines}")];
        // journalctl knows no later time than the year 9999.
        arguments.extend(since_usec.map(|usec| format!("--since=@{}", (usec / 1_000_000).min(LATEST))));
        arguments.extend([message_id(Message::Started), message_id(Message::Finished)]);
        let mut list = summaries(&journalctl(&arguments).await?);
        list.truncate(max);
        Ok(list)
    }

    /// The id of the newest report, finished or not; none when there is none.
    ///
    /// # Errors
    /// [`JournalError`] when the journal cannot be read.
    pub async fn last_report_id() -> Result<Option<String>, JournalError> {
        Ok(Self::list(None, 1).await?.into_iter().next().map(|summary| summary.report))
    }
}

/// Runs journalctl on what root wrote (`_UID` is journald's own word, nobody can forge it).
async fn journalctl(arguments: &[String]) -> Result<Vec<Fields>, JournalError> {
    let child = Command::new("journalctl")
        // --all: else a value of more than 4 KiB is null.
        .args(["--quiet", "--no-pager", "--output=json", "--all", "_UID=0"])
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(JournalError::Read)?;
    let output = match tokio::time::timeout(DEADLINE, child.wait_with_output()).await {
        Ok(output) => output.map_err(JournalError::Read)?,
        Err(_) => return Err(JournalError::ReadDeadline),
    };
    let message = String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or_default().to_owned();
    if !output.status.success() {
        return Err(JournalError::Journalctl { status: output.status, message });
    }
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| entry(line).map_err(JournalError::Parse)).collect()
}

/// One line of `journalctl -o json`.
fn entry(line: &[u8]) -> Result<Fields, serde_json::Error> {
    let object: serde_json::Map<String, Value> = serde_json::from_slice(line)?;
    Ok(object.into_iter().map(|(field, value)| (field, values(value))).collect())
}

/// The values of a field: a string; an array of bytes where it is not printable; an array of these where it repeats;
/// null where it is left out, which is no value.
fn values(value: Value) -> Vec<String> {
    match value {
        Value::Array(items) => match bytes(&items) {
            Some(text) => vec![text],
            None => items.into_iter().flat_map(values).collect(),
        },
        Value::String(text) => vec![text],
        Value::Null | Value::Object(_) => Vec::new(),
        other @ (Value::Bool(_) | Value::Number(_)) => vec![other.to_string()],
    }
}

/// The text that an array of bytes stands for; none when it is another array.
fn bytes(items: &[Value]) -> Option<String> {
    let bytes = items.iter().map(|item| item.as_u64().and_then(|byte| u8::try_from(byte).ok()));
    bytes.collect::<Option<Vec<u8>>>().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::entry;

    #[test]
    fn json_values_of_all_shapes() {
        let line = br#"{"A":"x","B":["x","y"],"C":[104,105,10],"D":["x",[27,91]],"E":null,"F":[[1],[2]],"G":""}"#;
        let fields = entry(line).unwrap();
        for (field, values) in [
            ("A", vec!["x"]),
            ("B", vec!["x", "y"]),
            ("C", vec!["hi\n"]),
            ("D", vec!["x", "\u{1b}["]),
            ("E", vec![]),
            ("F", vec!["\u{1}", "\u{2}"]),
            ("G", vec![""]),
        ] {
            assert_eq!(fields[field], values, "{field}");
        }
        assert!(entry(b"-- No entries --").is_err());
    }

    #[tokio::test]
    async fn an_id_cannot_become_another_match() {
        for bad in
            ["", "x", "../../etc/passwd", "0123456789abcdef0123456789abcde\n", "0123456789ABCDEF0123456789ABCDEF"]
        {
            assert!(super::Journal::read(bad).await.is_err(), "{bad}");
        }
    }
}
