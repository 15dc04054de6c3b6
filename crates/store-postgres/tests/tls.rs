//! Encrypted connections: to the host that was meant, or not at all.

mod support;

use partita_store::{Space, Store};
use partita_store_postgres::{Options, PostgresStore};
use partita_testing::postgres::Postgres;

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_to_a_host_that_is_trusted() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = std::env::temp_dir().join(format!("partita-trusted-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder can be made");
    let trusted = |name: &str, hosts: &[&str]| {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(hosts).expect("a certificate can be made");
        let path = folder.join(name);
        std::fs::write(&path, made.cert.pem()).expect("the folder can be written to");
        (made, path.to_str().expect("a path that is text").to_owned())
    };
    let (ours, ours_path) = trusted("ours.pem", &["127.0.0.1"]);
    let (_, other_path) = trusted("other.pem", &["127.0.0.1"]);
    postgres.use_tls(&ours.cert.pem(), &ours.signing_key.serialize_pem());
    let url = postgres.database();
    let options =
        |path: &str| Options::parse(&format!("{url}?sslmode=require&sslrootcert={path}")).expect("a right URL");

    let store = PostgresStore::open(options(&ours_path)).await.expect("it is trusted");
    assert_eq!(store.get(Space(1), b"p", b"r").await.expect("it is read"), None);
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE application_name = 'partita' AND NOT ssl";
    assert_eq!(Postgres::sql(&url, encrypted), "0");
    let refused = PostgresStore::open(options(&other_path)).await.expect_err("somebody else signed it");
    assert!(refused.contains("certificate"), "{refused}");

    let (elsewhere, elsewhere_path) = trusted("elsewhere.pem", &["example.com"]);
    postgres.use_tls(&elsewhere.cert.pem(), &elsewhere.signing_key.serialize_pem());
    let refused = PostgresStore::open(options(&elsewhere_path)).await.expect_err("it is another host's");
    assert!(refused.contains("certificate"), "{refused}");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}
