//! How RocksDB is set up, and why.
//!
//! Meant for rows of about a kilobyte on a machine that does other work too: little memory while idle, few threads, a
//! tidy folder that opens in milliseconds when it is empty, and reads that stay cheap when the rows outgrow our memory
//! and come from that of the operating system.

use crate::options::{Durability, Options};
use rocksdb::{
    BlockBasedOptions, Cache, ChecksumType, DBCompressionType, DBRecoveryMode, LogLevel, ReadOptions, WriteOptions,
};
use std::thread::available_parallelism;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Which part of the memory for caches is for rows. The rest is for blocks, which serve ranges of rows.
const ROW_CACHE_PERCENT: usize = 40;
/// Which part of it is for numbers of rows by which scans pass over them: at one column, for one and a half million rows of
/// the default.
const COLUMN_PERCENT: usize = 10;
/// Which part of it is for the places of rows: of the default, for a million and a quarter.
const PLACE_PERCENT: usize = 25;

/// How many tables that were just written are merged with the others at once.
const NEW_TABLES_MERGED: i32 = 12;
const MERGE_THREADS_MAX: usize = 4;

/// A part of each write buffer that tells which keys are not in it, so that most reads need not look: a hundred bits for a
/// row of a kilobyte, twenty for one of two hundred bytes. It is there from the start, also while the server is idle.
const WRITE_BUFFER_FILTER_RATIO: f64 = 0.0125;

pub(crate) fn database(options: &Options) -> Result<rocksdb::Options, rocksdb::Error> {
    // Settings that have no functions of their own. Without the first every start would write the rows that it replays from the
    // log to a small table file and sync that, where keeping them in memory is enough. The second spares a new folder a file
    // of which nobody asks, and two syncs: the list of files says the same.
    let mut settings = rocksdb::Options::default()
        .get_options_from_string("avoid_flush_during_recovery=true;write_identity_file=false")?;
    settings.create_if_missing(true);

    log(&mut settings);
    memory_and_files(&mut settings, options.write_buffer_bytes);
    tables(
        &mut settings,
        options.cache_bytes - row_cache_bytes(options) - column_bytes(options) - place_bytes(options),
        options.write_buffer_bytes,
    );
    tidiness(&mut settings);
    Ok(settings)
}

pub(crate) fn row_cache_bytes(options: &Options) -> usize {
    options.cache_bytes / 100 * ROW_CACHE_PERCENT
}

pub(crate) fn column_bytes(options: &Options) -> usize {
    options.cache_bytes / 100 * COLUMN_PERCENT
}

pub(crate) fn place_bytes(options: &Options) -> usize {
    options.cache_bytes / 100 * PLACE_PERCENT
}

/// A row that was read is kept by itself. To keep its block too costs a fifth of the read, and pushes out blocks that serve ranges.
pub(crate) fn read_row() -> ReadOptions {
    let mut settings = ReadOptions::default();
    settings.fill_cache(false);
    settings
}

pub(crate) fn write(durability: Durability) -> WriteOptions {
    let mut settings = WriteOptions::default();
    settings.set_sync(durability == Durability::Sync);
    settings
}

fn log(settings: &mut rocksdb::Options) {
    // After a power cut the end of the log that was never synced may be torn anywhere, since pages reach the disk in any
    // order: a hole, then intact records. With `Sync` nothing behind the last sync was acknowledged, so stopping at the
    // first record that is not whole loses nothing, and keeps batches whole. The stricter mode, which tolerates a cut
    // record at the very end only, would refuse to open the folder after such a power cut. What it would notice in
    // return, a synced log that went bad later, is noticed by `log_check`.
    settings.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    // Logs are not recycled, which would make syncs as cheap as `runway` does: RocksDB itself warns of a hole that recovery
    // up to a point in time may leave behind with them (`SanitizeOptions` in `db_impl_open.cc`).
    // Writes dirty pages out steadily rather than all at once when a file is closed.
    settings.set_bytes_per_sync(MIB as u64);
    settings.set_wal_bytes_per_sync(512 * KIB as u64);
}

fn memory_and_files(settings: &mut rocksdb::Options, write_buffer_bytes: usize) {
    // At most three of them: one that fills, one that is written out, one in reserve before writers have to wait. Their
    // sum is also what a start after a crash may have to replay.
    settings.set_write_buffer_size(write_buffer_bytes);
    settings.set_max_write_buffer_number(3);
    settings.set_memtable_prefix_bloom_ratio(WRITE_BUFFER_FILTER_RATIO);
    settings.set_memtable_whole_key_filtering(true);
    // Memory is taken in pieces of this size; an idle store holds one.
    settings.set_arena_block_size(256 * KIB);
    settings.set_max_background_jobs(2);
    // A merge is cut into pieces for all cores. It takes much memory that was free before, which the host of a virtual machine is
    // slow to give: one thread is then too slow for the writers, who wait while the other cores have nothing to do.
    settings.set_max_subcompactions(available_parallelism().map_or(1, usize::from).min(MERGE_THREADS_MAX) as u32);
    // Below the common limit of 1,024 per process, with room for connections. Without a limit every file would be opened
    // at the start. It also bounds what index and filters take, see below.
    settings.set_max_open_files(512);
    // A start opens sixteen files at the most, and by itself would start as many threads for it, even in a new folder: a
    // thirtieth of the time to the first answer.
    settings.set_max_file_opening_threads(available_parallelism().map_or(1, usize::from) as i32);
    settings.set_skip_stats_update_on_db_open(true);
    settings.set_avoid_unnecessary_blocking_io(true);
}

fn tables(settings: &mut rocksdb::Options, cache_bytes: usize, write_buffer_bytes: usize) {
    // Not compressed: to unpack a block costs more than all else that is done to its rows. With LZ4 files take 0.6 of the
    // space, but a row that is not in a cache costs 1.6 times as much to read and a scan twice as much.
    settings.set_compression_type(DBCompressionType::None);
    settings.set_level_compaction_dynamic_level_bytes(true);
    // So many new tables are merged at once, or as much as they hold together, which has to grow with their number. Ranges of
    // rows and inserts do not show it. With 8 tables transactions take a twentieth more processor time; with 16 or more
    // merging falls behind, and writers wait for it.
    settings.set_level_zero_file_num_compaction_trigger(NEW_TABLES_MERGED);
    settings.set_max_bytes_for_level_base(NEW_TABLES_MERGED as u64 * write_buffer_bytes as u64);

    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(&Cache::new_hyper_clock_cache(cache_bytes, 0));
    tables.set_format_version(6);
    // With the instruction that processors have for it the checksum takes half as long as the default one.
    tables.set_checksum_type(ChecksumType::CRC32c);
    // Of a block of 4 KiB a row is read faster by a tenth, of one of 16 KiB scans are faster by a twentieth, and slower
    // by a third with 4.
    tables.set_block_size(8 * KIB);
    // Of most keys in the index only what differs from the one before. It takes a third of the memory, and to find a block in it
    // meets fewer places that are in no processor's cache: in the engine by itself a read of a row takes 0.8 of the processor time, a
    // range of 100 rows 0.9.
    tables.set_index_block_restart_interval(16);
    tables.set_bloom_filter(10.0, false);
    tables.set_whole_key_filtering(true);
    tables.set_optimize_filters_for_memory(true);
    // Index and filters stay in memory for every open file: about 2 MiB for a gigabyte of rows, 70 MiB at the most. Cut
    // into blocks that come and go with the others they make a read of a row that is in no cache take twice as long.
    tables.set_cache_index_and_filter_blocks(false);
    settings.set_block_based_table_factory(&tables);
}

fn tidiness(settings: &mut rocksdb::Options) {
    settings.set_log_level(LogLevel::Warn);
    settings.set_keep_log_file_num(2);
    settings.set_max_log_file_size(MIB);
    settings.set_stats_dump_period_sec(0);
    settings.set_stats_persist_period_sec(0);
    settings.set_manifest_preallocation_size(64 * KIB);
    settings.set_max_manifest_file_size(16 * MIB);
}
