//! The checker: fjall recovers as it opens its folder; then the numbers of each client, and the balances.
mod notes;

use std::collections::BTreeMap;
use std::error::Error;

use fjall::{Database, KeyspaceCreateOptions};

fn look(directory: &str, clients: &mut BTreeMap<u32, u64>, wrong: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    let base = Database::builder(format!("{directory}/base")).open()?;
    let mut due = BTreeMap::new();
    for entry in base.keyspace("notes", KeyspaceCreateOptions::default)?.iter() {
        let (key, content) = entry.into_inner()?;
        let (client, number) = (u32::from_be_bytes(key[..4].try_into()?), u64::from_be_bytes(key[4..].try_into()?));
        let last = clients.entry(client).or_insert(0);
        if number != *last + 1 {
            wrong.push(format!("client {client}: {number} follows {last}"));
        }
        if *content != *notes::content(client, number) {
            wrong.push(format!("client {client}: note {number} is not what was written"));
        }
        *last = number;
        *due.entry(notes::account(client, number)).or_insert(0) += 1;
    }
    for entry in base.keyspace("balances", KeyspaceCreateOptions::default)?.iter() {
        let (account, balance) = entry.into_inner()?;
        let (account, balance) = (u32::from_be_bytes((*account).try_into()?), u64::from_be_bytes((*balance).try_into()?));
        if due.remove(&account) != Some(balance) {
            wrong.push(format!("account {account} is not the sum of its notes"));
        }
    }
    wrong.extend(due.keys().map(|account| format!("account {account} is missing")));
    Ok(())
}

fn main() {
    let (mut clients, mut wrong) = (BTreeMap::new(), Vec::new());
    let directory = std::env::args().nth(1).expect("a directory");
    let said = look(&directory, &mut clients, &mut wrong).err().map(|error| error.to_string());
    notes::print_answer(&clients, &wrong, said.as_slice());
}
