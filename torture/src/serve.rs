//! The server as a process of its own, on a store of our choice.

use crate::mutants::{self, Mutant};
use partita_server::Server;
use partita_server::config::Settings;
use std::path::Path;
use tokio::signal::unix::{SignalKind, signal};

/// Serves until it is told to end, and says what Partita says when it is ready. An error is a sentence for the user.
pub fn serve(mutant: Option<Mutant>, folder: Option<&Path>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| format!("Cannot start threads: {error}."))?;
    let store = mutants::open(mutant, folder)?;
    let mut settings = Settings::default();
    settings.table_port = Some(0);
    settings.admin_port = Some(0);
    settings.in_memory = Some(true);
    runtime.block_on(async {
        let mut terminate =
            signal(SignalKind::terminate()).map_err(|error| format!("Cannot listen for signals: {error}."))?;
        let server = Server::start_on(settings.complete()?, store).await?;
        println!("Azurite Table service successfully listens on http://{}", server.table);
        println!("Metrics: http://{}/metrics", server.admin.ok_or("There is no admin port.")?);
        terminate.recv().await;
        server.stop().await;
        Ok(())
    })
}
