//! Options of a call: an unknown one is refused, since a typo must not pass.

use super::dict::Dict;
use super::error::BusError;

/// The options of one call.
#[derive(Debug)]
pub struct Options(Dict);

impl Options {
    /// Checks their names.
    ///
    /// # Errors
    /// `InvalidArgs` with the one that is not known.
    pub fn of(given: Dict, known: &[&str]) -> Result<Self, BusError> {
        let mut unknown: Vec<&str> = given.keys().map(String::as_str).filter(|key| !known.contains(key)).collect();
        unknown.sort_unstable();
        let Some(key) = unknown.first() else { return Ok(Self(given)) };
        let known = if known.is_empty() { "this call has none".to_owned() } else { known.join(", ") };
        Err(BusError::invalid(format!("unknown option \"{key}\": {known}")))
    }

    /// A boolean; false where it is not given.
    ///
    /// # Errors
    /// `InvalidArgs` for another type.
    pub fn is(&mut self, key: &str) -> Result<bool, BusError> {
        let Some(value) = self.0.remove(key) else { return Ok(false) };
        bool::try_from(value).map_err(|_| BusError::invalid(format!("option \"{key}\" is a boolean")))
    }

    /// A string.
    ///
    /// # Errors
    /// `InvalidArgs` for another type.
    pub fn text(&mut self, key: &str) -> Result<Option<String>, BusError> {
        let Some(value) = self.0.remove(key) else { return Ok(None) };
        let text = String::try_from(value).map_err(|_| BusError::invalid(format!("option \"{key}\" is a string")))?;
        Ok(Some(text))
    }
}
