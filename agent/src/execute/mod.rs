//! Executes steps; decides nothing.
