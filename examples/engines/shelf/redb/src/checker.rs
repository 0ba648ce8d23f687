//! The checker: redb recovers as it opens the file; then its own check, the numbers of each client, and the balances.
mod notes;

use std::collections::BTreeMap;
use std::error::Error;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

const NOTES: TableDefinition<(u32, u64), &[u8]> = TableDefinition::new("notes");
const BALANCES: TableDefinition<u32, u64> = TableDefinition::new("balances");

fn look(directory: &str, clients: &mut BTreeMap<u32, u64>, wrong: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    let mut base = Database::open(format!("{directory}/base"))?;
    if !base.check_integrity()? {
        return Err("check_integrity repaired what recovery had left".into());
    }
    let (mut due, reading) = (BTreeMap::new(), base.begin_read()?);
    for entry in reading.open_table(NOTES)?.iter()? {
        let (key, content) = entry?;
        let (client, number) = key.value();
        let last = clients.entry(client).or_insert(0);
        if number != *last + 1 {
            wrong.push(format!("client {client}: {number} follows {last}"));
        }
        if content.value() != notes::content(client, number) {
            wrong.push(format!("client {client}: note {number} is not what was written"));
        }
        *last = number;
        *due.entry(notes::account(client, number)).or_insert(0) += 1;
    }
    for entry in reading.open_table(BALANCES)?.iter()? {
        let (account, balance) = entry?;
        if due.remove(&account.value()) != Some(balance.value()) {
            wrong.push(format!("account {} is not the sum of its notes", account.value()));
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
