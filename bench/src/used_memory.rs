//! Memory as it is on a machine that has been up for a while: all of it in use.
//!
//! The host of a virtual machine gives memory when it is first touched, and takes back what has been free for some seconds. To
//! write a gigabyte to a new file then takes two seconds of processor time, and 0.16 where no memory is free and the system
//! takes it from what it has read. So before a server starts, free memory is filled by reading a file that is all hole, which takes no
//! disk. Those are the first pages that the system gives away again, to whoever needs memory.

use crate::machine;
use crate::process::Folder;
use crate::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{available_parallelism, scope};

/// So much is read at once.
const PIECE_BYTES: u64 = 1 << 20;
/// The system keeps about so much free by itself.
const FREE_BYTES_KEPT: u64 = 256 << 20;
/// So large that what is read has never been read before, or so long ago that nothing of it is in memory any more.
const HOLE_BYTES: u64 = 1 << 40;
/// Others may take or free memory meanwhile.
const TRIES: usize = 3;

/// What fills memory.
#[derive(Debug)]
pub struct UsedMemory {
    hole: File,
    next: AtomicU64,
    _folder: Folder,
}

impl UsedMemory {
    /// Nothing is filled yet. The folder must not be in memory itself.
    pub fn new(folder: &Path) -> Result<UsedMemory> {
        let folder = Folder::new(folder.to_path_buf())?;
        let path = folder.path().join("hole");
        File::create(&path)?.set_len(HOLE_BYTES)?;
        Ok(UsedMemory { hole: File::open(&path)?, next: AtomicU64::new(0), _folder: folder })
    }

    /// Fills what is free, as far as it goes.
    pub fn fill(&self) -> Result<()> {
        for _ in 0..TRIES {
            let free = machine::free_memory();
            if free < FREE_BYTES_KEPT {
                break;
            }
            self.read(free - FREE_BYTES_KEPT / 2)?;
        }
        Ok(())
    }

    fn read(&self, bytes: u64) -> Result<()> {
        let end = self.next.load(Ordering::Relaxed) + bytes;
        let read = || {
            let mut piece = vec![0; PIECE_BYTES as usize];
            loop {
                let at = self.next.fetch_add(PIECE_BYTES, Ordering::Relaxed);
                if at >= end {
                    return Ok::<_, Error>(());
                }
                self.hole.read_at(&mut piece, at % HOLE_BYTES)?;
            }
        };
        scope(|scope| {
            let threads: Vec<_> =
                (0..available_parallelism().map_or(1, usize::from)).map(|_| scope.spawn(read)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("reading does not panic"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_takes_no_disk() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let memory = UsedMemory::new(&folder.path().join("memory")).expect("a file");
        memory.read(10 * PIECE_BYTES).expect("it can be read");
        assert!(machine::disk(folder.path()) < PIECE_BYTES);
    }
}
