//! The tables of a database, made by an operator.

use super::*;
use partita_testing::postgres::Postgres;

#[test]
fn an_operator_makes_the_tables_and_a_node_without_rights_uses_them() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.database();
    Postgres::sql(&url, "CREATE ROLE node LOGIN");
    let node = url.replace("postgres://postgres@", "postgres://node@");
    let (_, said) = fail(&["migrate", "--store", &node]);
    assert!(said.contains("permission denied") && said.contains("--print"), "{said}");
    let (_, said) = Process::try_start(&["--store", &node]).err().expect("it may not make tables");
    assert!(said.contains("partita migrate --print"), "{said}");

    let (sql, _) = succeed(&["migrate", "--store", &node, "--print"]);
    assert!(sql.contains("CREATE TABLE IF NOT EXISTS partita_row") && sql.contains("'format', 1"), "{sql}");
    assert_eq!(Postgres::sql(&url, "SELECT to_regclass('partita_row')"), "", "nothing is made");
    Postgres::sql(&url, &sql);
    let tables = "partita_row, partita_dropped, partita_floor, partita_meta";
    assert!(sql.contains(&format!("ON {tables}.")), "{sql}");
    Postgres::sql(&url, &format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO node"));
    let (said, _) = succeed(&["migrate", "--store", &node]);
    assert!(said.contains("have format 1 already"), "{said}");
    let (sql, _) = succeed(&["migrate", "--store", &node, "--print"]);
    assert!(sql.starts_with("-- Nothing to do"), "{sql}");
    let process = Process::start(&["--store", &node]);
    fill(&process, "People", 1, 3, 5);
    assert_eq!(rows(&process, "People").len(), 3);
}

#[test]
fn migrations_say_what_they_did() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.database();
    let migrate = ["migrate", "--store", &url];
    let (said, _) = succeed(&migrate);
    assert!(said.starts_with("Made the tables in postgres://127.0.0.1:") && said.ends_with("format 1.\n"), "{said}");
    assert!(succeed(&migrate).0.contains("have format 1 already"));
    for (format, says) in [(2, "made by a newer version"), (0, "which no version of Partita made")] {
        Postgres::sql(&url, &format!("UPDATE partita_meta SET value = {format} WHERE name = 'format'"));
        assert!(fail(&migrate).1.contains(says));
        assert!(fail(&[&migrate[..], &["--print"]].concat()).1.contains(says));
    }
    let (_, said) = fail(&["migrate", "--store", "mysql://me:s3cret@here/db"]);
    assert!(said.contains("postgres://") && !said.contains("s3cret"), "{said}");
    let (_, said) = fail(&["migrate", "--store", "postgres://me:s3cret@127.0.0.1:1/db"]);
    assert!(said.contains("no connection") && !said.contains("s3cret"), "{said}");
}
