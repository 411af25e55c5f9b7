//! See [`guest::fuzz::kernel`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| guest::fuzz::kernel(bytes));
