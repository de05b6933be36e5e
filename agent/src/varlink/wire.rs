//! Varlink as it goes over a stream: JSON objects, a NUL after each.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

/// A call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The interface's name, a dot, and the method's.
    pub method: String,
    /// An object.
    #[serde(default)]
    pub parameters: Value,
    /// The caller takes several replies.
    #[serde(default)]
    pub more: bool,
    /// The caller takes no reply.
    #[serde(default)]
    pub oneway: bool,
}

/// A reply, of which a call with `more` may have several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The error's interface, a dot, and its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// An object.
    #[serde(default)]
    pub parameters: Value,
    /// Another reply follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
}

/// Messages that come in.
#[derive(Debug)]
pub struct Messages<R> {
    stream: BufReader<R>,
    /// What has come of the next one.
    part: Vec<u8>,
    longest: usize,
}

impl<R: AsyncRead + Unpin> Messages<R> {
    /// Messages of at most so many bytes.
    pub fn new(stream: R, longest: usize) -> Self {
        Self { stream: BufReader::new(stream), part: Vec::new(), longest }
    }

    /// The next one without its NUL; none at the end. Dropped while it waits, it loses nothing.
    ///
    /// # Errors
    /// The stream's, and `InvalidData` for a message that is too long.
    pub async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let new = self.stream.fill_buf().await?;
            let length = new.len();
            let end = new.iter().position(|byte| *byte == 0);
            self.part.extend_from_slice(&new[..end.unwrap_or(length)]);
            self.stream.consume(end.map_or(length, |end| end + 1));
            if self.part.len() > self.longest {
                let error = format!("a message is longer than {} bytes", self.longest);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.part)));
            }
            // What was begun and not ended was never said.
            if length == 0 {
                return Ok(None);
            }
        }
    }

    /// The stream.
    pub fn stream(&self) -> &R {
        self.stream.get_ref()
    }
}

/// Writes a message.
///
/// # Errors
/// The stream's.
pub async fn write(stream: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(message)?;
    bytes.push(0);
    stream.write_all(&bytes).await
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::Messages;

    #[tokio::test]
    async fn a_message_ends_with_a_nul_wherever_it_is_cut() {
        for size in 1..9 {
            let (mut sender, receiver) = tokio::io::duplex(size);
            let sent = tokio::spawn(async move { sender.write_all(b"one\0two\0\0three").await });
            let mut messages = Messages::new(receiver, 5);
            for expected in [&b"one"[..], b"two", b""] {
                assert_eq!(messages.next().await.unwrap().as_deref(), Some(expected), "{size}");
            }
            assert_eq!(messages.next().await.unwrap(), None, "\"three\" has no end");
            sent.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_is_an_error_before_its_end_has_come() {
        let (mut sender, receiver) = tokio::io::duplex(64);
        sender.write_all(b"four\0fives").await.unwrap();
        let mut messages = Messages::new(receiver, 4);
        assert_eq!(messages.next().await.unwrap().as_deref(), Some(&b"four"[..]));
        assert_eq!(messages.next().await.unwrap_err().kind(), std::io::ErrorKind::InvalidData);
    }

    #[tokio::test]
    async fn waiting_can_be_given_up_and_taken_up_again() {
        let (mut sender, receiver) = tokio::io::duplex(64);
        let mut messages = Messages::new(receiver, 64);
        sender.write_all(b"on").await.unwrap();
        tokio::select! {
            biased;
            _ = messages.next() => unreachable!(),
            () = tokio::task::yield_now() => {}
        }
        sender.write_all(b"e\0").await.unwrap();
        assert_eq!(messages.next().await.unwrap().as_deref(), Some(&b"one"[..]));
    }
}
