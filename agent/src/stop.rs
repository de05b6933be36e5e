//! The sign to stop that a running apply looks at between its steps.

use holdfast_core::step::Stop;

use crate::latest::Once;

/// A sign that is shown at most once, to all its copies. The first reason stays.
pub type StopSign = Once<Stop>;
