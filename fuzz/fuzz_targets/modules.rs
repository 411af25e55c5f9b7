//! See [`guest::fuzz::modules`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| guest::fuzz::modules(bytes));
