//! Reports to the journal and back.
