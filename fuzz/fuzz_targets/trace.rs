//! See [`trace::fuzz::recording`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trace::fuzz::recording(bytes));
