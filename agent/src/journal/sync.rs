//! The one Varlink call that says when journald has everything on disk.

use std::path::Path;

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::JournalError;

/// Where journald answers Varlink, to root only.
pub(super) const SOCKET: &str = "/run/systemd/journal/io.systemd.journal";

/// A call ends with a NUL.
const CALL: &[u8] = b"{\"method\":\"io.systemd.Journal.Synchronize\",\"parameters\":{}}\0";

#[derive(Deserialize)]
struct Reply {
    error: Option<String>,
}

/// Calls Synchronize and waits for its reply. `journalctl --sync` does the same in a process of its own.
pub(super) async fn synchronize(socket: impl AsRef<Path>) -> Result<(), JournalError> {
    let mut stream = UnixStream::connect(socket).await.map_err(JournalError::Synchronize)?;
    stream.write_all(CALL).await.map_err(JournalError::Synchronize)?;
    let mut reply = Vec::new();
    BufReader::new(stream).read_until(0, &mut reply).await.map_err(JournalError::Synchronize)?;
    if reply.pop() != Some(0) {
        return Err(JournalError::Synchronize(std::io::ErrorKind::UnexpectedEof.into()));
    }
    match serde_json::from_slice(&reply).map_err(JournalError::Parse)? {
        Reply { error: Some(error) } => Err(JournalError::Refused(error)),
        Reply { error: None } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::UnixListener;

    use super::{CALL, synchronize};
    use crate::journal::JournalError;

    /// A journald that answers one call with these bytes.
    async fn answer(bytes: &'static [u8]) -> Result<(), JournalError> {
        let socket = std::env::temp_dir().join(format!("holdfast-sync-{}-{}", std::process::id(), bytes.len()));
        let listener = UnixListener::bind(&socket).unwrap();
        let server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let mut call = Vec::new();
            stream.read_until(0, &mut call).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            call
        });
        let result = synchronize(&socket).await;
        std::fs::remove_file(&socket).unwrap();
        assert_eq!(server.await.unwrap(), CALL);
        result
    }

    #[tokio::test]
    async fn only_a_whole_good_reply_is_success() {
        assert!(answer(b"{\"parameters\":{}}\0").await.is_ok());
        let refused = answer(b"{\"error\":\"org.varlink.service.PermissionDenied\",\"parameters\":{}}\0").await;
        assert!(matches!(refused, Err(JournalError::Refused(error)) if error.ends_with("PermissionDenied")));
        assert!(matches!(answer(b"{\"parameters\":").await, Err(JournalError::Synchronize(_))));
        assert!(matches!(answer(b"").await, Err(JournalError::Synchronize(_))));
        assert!(matches!(answer(b"nonsense\0").await, Err(JournalError::Parse(_))));
    }

    #[tokio::test]
    async fn no_journald_is_an_error() {
        assert!(matches!(synchronize("/nonexistent/socket").await, Err(JournalError::Synchronize(_))));
    }
}
