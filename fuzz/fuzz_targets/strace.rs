//! See [`trace::fuzz::strace`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trace::fuzz::strace(bytes));
