//! Parameters of a call: an unknown one is refused, since a typo must not pass.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Refusal;

/// The parameters of one call.
#[derive(Debug)]
pub struct Parameters(Map<String, Value>);

impl Parameters {
    /// Those of a call; null is none.
    ///
    /// # Errors
    /// [`Refusal::parameter`] when they are no object.
    pub fn of(given: Value) -> Result<Self, Refusal> {
        match given {
            Value::Null => Ok(Self(Map::new())),
            Value::Object(given) => Ok(Self(given)),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(Refusal::parameter("parameters"))
            }
        }
    }

    /// Takes one; null is as if it were not given.
    ///
    /// # Errors
    /// [`Refusal::parameter`] when it is missing, or of another type.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Refusal> {
        let value = self.0.remove(name).unwrap_or_default();
        serde_json::from_value(value).map_err(|_| Refusal::parameter(name))
    }

    /// There must be no other.
    ///
    /// # Errors
    /// [`Refusal::parameter`] with the first that nobody took.
    pub fn end(self) -> Result<(), Refusal> {
        self.0.keys().next().map_or(Ok(()), |name| Err(Refusal::parameter(name)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Parameters;
    use crate::varlink::Refusal;

    /// What a call with `modules: []string, wait: ?bool` makes of them.
    fn read(given: Value) -> Result<(Vec<String>, Option<bool>), Refusal> {
        let mut parameters = Parameters::of(given)?;
        let read = (parameters.take("modules")?, parameters.take("wait")?);
        parameters.end()?;
        Ok(read)
    }

    #[test]
    fn what_is_not_as_described_is_refused_by_its_name() {
        let refused = |name| Err(Refusal::parameter(name));
        for (given, expected) in [
            (json!({ "modules": ["web"], "wait": true }), Ok((vec!["web".to_owned()], Some(true)))),
            (json!({ "modules": [], "wait": null }), Ok((vec![], None))),
            (json!({ "modules": [] }), Ok((vec![], None))),
            (json!({ "modules": "web" }), refused("modules")),
            (json!({ "wait": true }), refused("modules")),
            (json!({ "modules": [], "wait": 1 }), refused("wait")),
            (json!({ "modules": [], "wiat": true }), refused("wiat")),
            (json!(["web"]), refused("parameters")),
            (Value::Null, refused("modules")),
        ] {
            assert_eq!(read(given.clone()), expected, "{given}");
        }
    }
}
