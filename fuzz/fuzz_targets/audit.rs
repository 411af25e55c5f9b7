//! See [`report::fuzz::audit`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| report::fuzz::audit(bytes));
