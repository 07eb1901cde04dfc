#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| foretell_fuzz::traffic(data));
