//! See [`report::fuzz::bonnie`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| report::fuzz::bonnie(bytes));
