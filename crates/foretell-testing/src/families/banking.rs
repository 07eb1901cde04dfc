//! banking-N (004 section 7): N threads move money around, and main asserts at the end that none
//! was lost. The erroneous version leaves the critical section between the read and the write.

use foretell_trace::{Trace, VariableId};

use super::Program;

/// What every account has at first.
const BALANCE: u64 = 100;

/// Thread `i` moves money from account `i` to account `i + 1`, so every account has two users.
pub fn banking(threads: u32, erroneous: bool) -> Trace {
    let mut program = Program::new("banking.c");
    let accounts: Vec<_> = (0..threads)
        .map(|account| {
            let balance = program.integer(&format!("account{account}"), BALANCE);
            (balance, program.mutex(&format!("lock{account}")))
        })
        .collect();
    let workers: Vec<_> =
        (0..threads).map(|worker| program.fork(&format!("worker{worker}"))).collect();
    for (number, &worker) in workers.iter().enumerate() {
        let amount = number as u64 + 1;
        let to = (number + 1) % accounts.len();
        for (line, account, change) in [(10, number, amount.wrapping_neg()), (20, to, amount)] {
            let (balance, lock) = accounts[account];
            program.at(line).lock(worker, lock);
            let value = program.at(line + 1).read(worker, balance);
            if erroneous {
                program.at(line + 2).unlock(worker, lock);
                program.at(line + 3).lock(worker, lock);
            }
            let sum = program.plus(value, change);
            program.at(line + 4).write(worker, balance, sum);
            program.at(line + 5).unlock(worker, lock);
        }
        program.end(worker);
    }
    for &worker in &workers {
        program.join(worker);
    }
    let balances: Vec<VariableId> = accounts.iter().map(|&(balance, _)| balance).collect();
    let mut total = program.constant(0);
    for &balance in &balances {
        let value = program.at(30).read(Program::MAIN, balance);
        total = program.sum(total, value);
    }
    let consistent = program.is(total, BALANCE * u64::from(threads));
    program.at(31).assert(Program::MAIN, consistent);
    program.finish()
}
