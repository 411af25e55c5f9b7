//! See [`report::fuzz::printed`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| report::fuzz::printed(bytes));
