//! See [`report::fuzz::dbench_text`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| report::fuzz::dbench_text(bytes));
