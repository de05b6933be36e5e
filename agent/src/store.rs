//! Ledger on disk: lock, read, write-fsync-rename.
