//! What the operator sees at three in the morning: a pure view of plan, observed state and last report.
