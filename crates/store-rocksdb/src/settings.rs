//! How RocksDB is set up, and why.
//!
//! Meant for rows of about a kilobyte on a machine that does other work too: little memory while idle, few threads, a
//! tidy folder that opens in milliseconds when it is empty, and reads that stay cheap when the rows outgrow memory.

use crate::options::{Durability, Options};
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DBCompressionType, DBRecoveryMode, LogLevel, WriteOptions,
};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

pub(crate) fn database(options: &Options) -> Result<rocksdb::Options, rocksdb::Error> {
    // The one setting that has no function of its own. Without it every start would write the rows that it replays from the
    // log to a small table file and sync that, where keeping them in memory is enough.
    let mut settings = rocksdb::Options::default().get_options_from_string("avoid_flush_during_recovery=true")?;
    settings.create_if_missing(true);

    log(&mut settings);
    memory_and_files(&mut settings);
    tables(&mut settings, options.cache_bytes);
    tidiness(&mut settings);
    Ok(settings)
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
    // return is a synced log that went bad later.
    settings.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    // Writes dirty pages out steadily rather than all at once when a file is closed.
    settings.set_bytes_per_sync(MIB as u64);
    settings.set_wal_bytes_per_sync(512 * KIB as u64);
}

fn memory_and_files(settings: &mut rocksdb::Options) {
    // At most three of them: one that fills, one that is written out, one in reserve before writers have to wait. Their
    // sum is also what a start after a crash may have to replay.
    settings.set_write_buffer_size(64 * MIB);
    settings.set_max_write_buffer_number(3);
    // Memory is taken in pieces of this size; an idle store holds one.
    settings.set_arena_block_size(256 * KIB);
    settings.set_max_background_jobs(2);
    // Below the common limit of 1,024 per process, with room for connections. Without a limit every file would be opened
    // at the start.
    settings.set_max_open_files(512);
    settings.set_skip_stats_update_on_db_open(true);
    settings.set_avoid_unnecessary_blocking_io(true);
}

fn tables(settings: &mut rocksdb::Options, cache_bytes: usize) {
    // Most rows live on the bottom level, where they are written seldom and compressed well; above it speed counts.
    settings.set_compression_type(DBCompressionType::Lz4);
    settings.set_bottommost_compression_type(DBCompressionType::Zstd);
    settings.set_level_compaction_dynamic_level_bytes(true);

    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(&Cache::new_hyper_clock_cache(cache_bytes, 0));
    tables.set_format_version(6);
    // Larger than the default: a scan decompresses fewer, fuller blocks, and the index has a quarter of the entries.
    tables.set_block_size(16 * KIB);
    tables.set_bloom_filter(10.0, false);
    tables.set_whole_key_filtering(true);
    tables.set_optimize_filters_for_memory(true);
    // Index and filters are cut into blocks that are cached like any other. Otherwise they would be held in memory for
    // every open file, some gigabytes for a terabyte of rows, outside the limit that was asked for.
    tables.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    tables.set_partition_filters(true);
    tables.set_metadata_block_size(4 * KIB);
    tables.set_cache_index_and_filter_blocks(true);
    tables.set_cache_index_and_filter_blocks_with_high_priority(true);
    tables.set_pin_top_level_index_and_filter(true);
    tables.set_pin_l0_filter_and_index_blocks_in_cache(true);
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
