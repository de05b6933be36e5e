//! stub
use crate::step::Trailer;use crate::ledger::Pin;
/// x
pub fn render(text: &str, _t: &Trailer, pin: Option<&Pin>) -> String { format!("{text}\n{pin:?}") }
/// x
pub fn mark(_s:&str, hash: &str) -> String { format!("io.holdfast.desired={hash}") }
