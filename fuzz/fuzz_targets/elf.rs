//! See [`guest::fuzz::elf`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| guest::fuzz::elf(bytes));
