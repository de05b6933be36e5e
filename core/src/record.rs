//! The journal as a pure function: Report -> records; the only list of MESSAGE_IDs and field names.
