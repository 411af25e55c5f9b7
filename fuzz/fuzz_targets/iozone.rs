//! See [`report::fuzz::iozone`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| report::fuzz::iozone(bytes));
