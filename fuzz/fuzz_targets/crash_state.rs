//! See [`engine::fuzz::crash_state`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| engine::fuzz::crash_state(bytes));
