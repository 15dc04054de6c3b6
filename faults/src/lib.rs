//! Faults of the machine below the server, made at will: power cuts, disks that fail, clocks that jump.
//!
//! ```text
//! trace     what a process did to its files, recorded by the library in `preload`
//! image     which disks a power cut could have left behind, worked out of a trace
//! disk      a folder that stands for a disk: starts the real binary on it, with faults, and cuts its power
//! load      clients that write and know what they were promised; what they check afterwards
//! random    numbers from a seed
//! ```

pub mod disk;
pub mod image;
pub mod load;
pub mod random;
pub mod trace;
