//! Runs every target on its stored inputs: the corpus, and whatever has once been found to be wrong.

use partita_fuzzing::TARGETS;
use std::fs;
use std::path::{Path, PathBuf};

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn inputs(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a folder that can be read").path()).collect();
    paths.sort();
    paths
}

#[test]
fn stored_inputs() {
    let mut failed = Vec::new();
    for target in TARGETS {
        let corpus = inputs(&fuzz_folder().join("corpus").join(target.name));
        assert!(!corpus.is_empty(), "{} has no corpus", target.name);
        for path in corpus.into_iter().chain(inputs(&fuzz_folder().join("regressions").join(target.name))) {
            let data = fs::read(&path).expect("a file that can be read");
            if std::panic::catch_unwind(|| (target.run)(&data)).is_err() {
                failed.push(path);
            }
        }
    }
    assert!(failed.is_empty(), "these inputs break a property: {failed:#?}");
}

/// A folder of inputs without a target would be tested by nobody, a target without a binary fuzzed by nobody.
#[test]
fn every_folder_has_a_target_and_every_target_a_binary() {
    for kind in ["corpus", "regressions"] {
        for folder in inputs(&fuzz_folder().join(kind)) {
            let name = folder.file_name().unwrap_or_default().to_owned();
            assert!(TARGETS.iter().any(|target| name == target.name), "{} has no target", folder.display());
        }
    }
    for target in TARGETS {
        let binary = fuzz_folder().join("fuzz_targets").join(target.name).with_extension("rs");
        let text = fs::read_to_string(&binary).unwrap_or_else(|error| panic!("{}: {error}", binary.display()));
        assert!(text.contains(&format!("partita_fuzzing::{}", target.name)), "{}", binary.display());
    }
}
