//! See [`guest::fuzz::stream`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| guest::fuzz::stream(bytes));
