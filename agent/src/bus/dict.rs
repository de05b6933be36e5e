//! JSON as D-Bus knows it: `a{sv}`, and back. What stands on the bus is so what stands in `--json`, key for key.
//!
//! A null is left out, since D-Bus has none; an object is `a{sv}`, a list `aa{sv}` or `as`; numbers are `t`, negative ones
//! `x`.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};
use zbus::{Array, OwnedVariant, Variant};

/// `a{sv}`
pub type Dict = HashMap<String, OwnedVariant>;

/// An object as `a{sv}`; anything else is an empty one.
#[must_use]
pub fn dict(value: &Value) -> Dict {
    let Value::Object(object) = value else { return Dict::new() };
    object.iter().filter_map(|(key, value)| Some((key.clone(), variant(value)?))).collect()
}

/// `a{sv}` as an object.
#[must_use]
pub fn object(dict: &Dict) -> Value {
    Value::Object(dict.iter().map(|(key, value)| (key.clone(), json(value))).collect())
}

fn variant(value: &Value) -> Option<OwnedVariant> {
    let variant = match value {
        Value::Null => return None,
        Value::Bool(yes) => Variant::from(*yes),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(number), _, _) => Variant::from(number),
            (None, Some(number), _) => Variant::from(number),
            (None, None, number) => Variant::from(number?),
        },
        Value::String(text) => Variant::from(text.as_str()),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            Variant::from(items.iter().map(dict).collect::<Vec<Dict>>())
        }
        Value::Array(items) => {
            let words = items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            Variant::from(words.collect::<Vec<String>>())
        }
        Value::Object(_) => Variant::from(dict(value)),
    };
    // Only a file descriptor can fail to be kept, and there is none.
    OwnedVariant::try_from(variant).ok()
}

fn json(variant: &Variant<'_>) -> Value {
    match variant {
        Variant::Bool(yes) => Value::Bool(*yes),
        Variant::U8(number) => (*number).into(),
        Variant::I16(number) => (*number).into(),
        Variant::U16(number) => (*number).into(),
        Variant::I32(number) => (*number).into(),
        Variant::U32(number) => (*number).into(),
        Variant::I64(number) => (*number).into(),
        Variant::U64(number) => (*number).into(),
        Variant::F64(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
        Variant::Str(text) => text.as_str().into(),
        Variant::ObjectPath(path) => path.as_str().into(),
        Variant::Signature(signature) => signature.to_string().into(),
        Variant::Variant(inner) => json(inner),
        Variant::Array(items) => list(items),
        Variant::Dict(entries) => {
            Value::Object(entries.iter().map(|(key, value)| (key_of(key), json(value))).collect::<Map<_, _>>())
        }
        Variant::Structure(fields) => fields.fields().iter().map(json).collect(),
        Variant::Fd(_) => Value::Null,
    }
}

fn list(items: &Array<'_>) -> Value {
    items.iter().map(json).collect()
}

fn key_of(key: &Variant<'_>) -> String {
    match json(key) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{dict, object};

    #[test]
    fn what_crosses_the_bus_comes_back() {
        let value = json!({
            "text": "über", "yes": true, "number": 18_446_744_073_709_551_615_u64, "less": -3, "words": ["a", "b"],
            "none": [], "rows": [{ "a": 1, "deep": { "b": "c" } }, {}], "reasons": { "found": 13 },
        });
        assert_eq!(object(&dict(&value)), value);
    }

    #[test]
    fn there_is_no_null_on_the_bus() {
        assert_eq!(object(&dict(&json!({ "unit": null, "name": "x" }))), json!({ "name": "x" }));
    }
}
