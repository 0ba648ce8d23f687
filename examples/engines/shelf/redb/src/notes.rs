//! A transaction adds a note under its client and number, and one to the balance of an account that follows from both.
#![allow(dead_code)] // each of the two programs uses a part

pub fn sum(client: u32, number: u64) -> u64 {
    let key = [&client.to_be_bytes()[..], &number.to_be_bytes()[..]].concat();
    key.iter().fold(0xcbf29ce484222325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100000001b3)) // FNV-1a
}

pub fn content(client: u32, number: u64) -> Vec<u8> {
    let sum = sum(client, number);
    sum.to_be_bytes().repeat(4 + (sum % 32) as usize)
}

pub fn account(client: u32, number: u64) -> u32 {
    (sum(client, number) % 100) as u32
}

/// The value of `--NAME=VALUE`; of the last where it is given twice.
pub fn option(name: &str) -> Option<String> {
    std::env::args().filter_map(|word| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_string())).last()
}

pub fn number(name: &str) -> u64 {
    option(name).and_then(|word| word.parse().ok()).unwrap_or(1)
}

/// What the checker prints. Quotes and backslashes of an engine's own words are left out.
pub fn print_answer(clients: &std::collections::BTreeMap<u32, u64>, wrong: &[String], refused: &[String]) {
    let words = |said: &[String]| {
        let plain = said.iter().take(20).map(|line| line.replace(['"', '\\'], "").replace(|c: char| c.is_control(), " "));
        plain.map(|line| format!("\"{line}\"")).collect::<Vec<_>>().join(", ")
    };
    let last = clients.iter().map(|(client, last)| format!("\"{client}\": {last}")).collect::<Vec<_>>().join(", ");
    println!("{{\"clients\": {{{last}}}, \"wrong\": [{}], \"refused\": [{}]}}", words(wrong), words(refused));
}
