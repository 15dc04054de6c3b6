//! Several nodes on one PostgreSQL: what clients of all of them see together is what one server could have answered, while nodes
//! and the database go away and come back.

use partita_testing::process::binary;
use partita_torture::cluster::{Database, Program, Storage};
use partita_torture::faults::{Fault, Outcome, Plan, Until, torture};

fn run(database: Database, nodes: usize, faults: &[Fault], times: u64) -> Outcome {
    let until = Until::Faults(times * faults.len() as u64);
    let plan = Plan { seed: 1, clients: 6, nodes, until, faults: faults.to_vec() };
    let outcome = torture(&Program::partita(binary()), &mut Storage::Database(database), &plan, &mut |_| {});
    if let Some(violation) = outcome.violation {
        panic!("{violation}");
    }
    println!("{outcome:?}");
    assert!(outcome.totals.transactions > 0, "nothing was written: {outcome:?}");
    outcome
}

#[test]
fn nodes_that_come_and_go_are_as_one() {
    let Some(database) = Database::start() else { return };
    let outcome = run(database, 3, &[Fault::Kill, Fault::Stop, Fault::DatabaseCrash], 3);
    assert_eq!((outcome.crashes, outcome.stops, outcome.database_crashes), (3, 3, 3));
}

/// A primary dies with all its processes and its synchronous standby is promoted. Nodes find it by themselves, nothing that was
/// acknowledged is lost, and until then clients are told that the server is busy or that the time was over, and nothing else.
#[test]
fn nodes_follow_their_database_to_its_standby() {
    let Some(database) = Database::start_with_standby() else { return };
    let outcome = run(database, 2, &[Fault::Failover], 2);
    assert_eq!(outcome.failovers, 2);
    assert!(outcome.totals.busy > 0, "nobody was told that the database is away: {outcome:?}");
    println!("Clients were without an answer for at most {:?}.", outcome.totals.outage);
}
