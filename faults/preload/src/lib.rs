//! Stands between a process and its files, when `LD_PRELOAD` names it: writes down what is done to them, and makes calls fail.
//!
//! Three variables of the environment say what to do; without the first nothing is touched.
//!
//! ```text
//!   PARTITA_FAULTS_FOLDER     files and folders at or below this absolute path are watched
//!   PARTITA_FAULTS_TRACE      a file, outside of it, that records are appended to
//!   PARTITA_FAULTS_CONTROL    a file of rules, read again at every call, see `rules`
//! ```
//!
//! With a trace nothing is really synced: the process believes it, and the trace says when it was told so. What would have been
//! left by a power cut is worked out of the trace by `partita-faults`.
//!
//! A call and its record are made under one lock, so that records stand in the order of effects. Only syncs run outside of it,
//! as they do in a kernel; their record says how long the trace was when they began, and nothing written later is covered.
//!
//! Not seen: what is written through `mmap` or by system calls made directly, and by `FILE` streams inside the C library. RocksDB
//! writes by `write`, `pwrite` and friends; a stream it uses for its information log only.
//!
//! This is the one crate with `unsafe` of our own. Taking the place of a C function means to be called with raw pointers, and
//! making the call for it means a system call; there is no safe way to say either. Everything that can be safe is in `rules` and
//! in the trace format. Nothing here may use `std::fs`, whose calls would come back to these functions.

#![cfg(target_os = "linux")]
#![allow(clippy::missing_safety_doc, reason = "they are what the C library documents under the same names")]
#![allow(missing_docs, reason = "they are what the C library documents under the same names")]

mod rules;
#[path = "../../src/trace.rs"]
mod trace;

use libc::{c_char, c_int, c_long, c_uint, c_void, iovec, mode_t, off_t, size_t, ssize_t, timespec};
use rules::{Call, Effect, Rules};
use std::borrow::Cow;
use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use trace::Record;

/// Descriptors above are not watched; a server has fewer files than that.
const DESCRIPTORS: usize = 1 << 16;

/// More than any rules take.
const CONTROL_BYTES_MAX: usize = 4096;

static WATCH: OnceLock<Watch> = OnceLock::new();

/// Which descriptors are of watched files. Beside the lock, because every write to a socket asks.
static WATCHED: [AtomicBool; DESCRIPTORS] = [const { AtomicBool::new(false) }; DESCRIPTORS];

struct Watch {
    folder: Vec<u8>,
    trace: Option<c_int>,
    control: Option<CString>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rules: Rules,
    control: Vec<u8>,
    /// Paths by descriptor.
    paths: Vec<Option<Vec<u8>>>,
    trace_bytes: u64,
}

/// The loader calls this before the program begins, when the C library is ready.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    let variable = |name: &str| std::env::var_os(name).map(OsString::into_vec).filter(|value| !value.is_empty());
    let Some(folder) = variable("PARTITA_FAULTS_FOLDER") else { return };
    let control = variable("PARTITA_FAULTS_CONTROL").and_then(|path| CString::new(path).ok());
    let trace = variable("PARTITA_FAULTS_TRACE").and_then(|path| CString::new(path).ok()).map(|path| {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
        // SAFETY: the path is a string that lives through the call.
        let fd = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o644) };
        // A test without its trace would find nothing wrong.
        assert!(fd >= 0, "the trace cannot be opened");
        fd as c_int
    });
    // SAFETY: the descriptor is open.
    let trace_bytes = trace.map_or(0, |fd| unsafe { libc::syscall(libc::SYS_lseek, fd, 0, libc::SEEK_END) } as u64);
    let state = Mutex::new(State { trace_bytes, ..State::default() });
    let watch = WATCH.get_or_init(|| Watch { folder, trace, control, state });
    watch.record(&mut watch.lock(), &Record::Start);
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn covers(&self, path: &[u8]) -> bool {
        path.strip_prefix(self.folder.as_slice()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    fn record(&self, state: &mut State, record: &Record<'_>) {
        let Some(trace) = self.trace else { return };
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        // SAFETY: the descriptor is ours and the bytes are there.
        let written = unsafe { libc::syscall(libc::SYS_write, trace, bytes.as_ptr(), bytes.len()) };
        assert_eq!(written, bytes.len() as c_long, "the trace cannot be written");
        state.trace_bytes += bytes.len() as u64;
    }

    /// What the rules, as they are now, say of a call.
    fn effect(&self, state: &mut State, call: Call, path: &[u8], bytes: usize) -> Option<Effect> {
        self.read_rules(state);
        state.rules.effect(call, path, bytes)
    }

    fn read_rules(&self, state: &mut State) {
        let Some(path) = &self.control else { return };
        let mut text = [0_u8; CONTROL_BYTES_MAX];
        // SAFETY: the path is a string, the buffer as long as is said, and the descriptor closed once.
        let length = unsafe {
            let flags = libc::O_RDONLY | libc::O_CLOEXEC;
            let fd = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0);
            if fd < 0 {
                return;
            }
            let length = libc::syscall(libc::SYS_read, fd, text.as_mut_ptr(), text.len());
            libc::syscall(libc::SYS_close, fd);
            length.max(0) as usize
        };
        if state.control != text[..length] {
            state.control = text[..length].to_vec();
            state.rules = Rules::parse(&String::from_utf8_lossy(&state.control));
        }
    }
}

impl State {
    fn path(&self, fd: c_int) -> Vec<u8> {
        self.paths.get(fd as usize).cloned().flatten().unwrap_or_default()
    }
}

fn fail(errno: c_int) -> c_int {
    // SAFETY: it points to this thread's own.
    unsafe { *libc::__errno_location() = errno };
    -1
}

fn errno() -> c_int {
    // SAFETY: it points to this thread's own.
    unsafe { *libc::__errno_location() }
}

/// The watch, if the descriptor is of a watched file.
fn watch_of(fd: c_int) -> Option<&'static Watch> {
    let watched = WATCHED.get(usize::try_from(fd).ok()?)?.load(Ordering::Acquire);
    if watched { WATCH.get() } else { None }
}

/// The watch and the path, if the path is watched. A path that is not absolute is not.
unsafe fn watch_path(path: *const c_char) -> Option<(&'static Watch, Vec<u8>)> {
    let watch = WATCH.get()?;
    if path.is_null() {
        return None;
    }
    // SAFETY: whoever calls gives a string, as the function of the C library demands.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    watch.covers(path).then(|| (watch, path.to_vec()))
}

/// Makes a call on watched paths and records it if it succeeds.
fn on_path(watch: &Watch, call: Call, path: &[u8], make: impl FnOnce() -> c_long, record: &Record<'_>) -> c_int {
    let mut state = watch.lock();
    if let Some(effect) = watch.effect(&mut state, call, path, 0) {
        return fail(effect.errno());
    }
    let result = make();
    if result == 0 {
        watch.record(&mut state, record);
    }
    result as c_int
}

unsafe fn open_at(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: passed on as it was given.
    let make = || unsafe { libc::syscall(libc::SYS_openat, folder, path, flags, mode as c_uint) as c_int };
    // SAFETY: the caller gives a string.
    let Some((watch, name)) = (unsafe { watch_path(path) }) else { return make() };
    let mut state = watch.lock();
    let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
    let call = if writes { Call::Create } else { Call::Open };
    if let Some(effect) = watch.effect(&mut state, call, &name, 0) {
        return fail(effect.errno());
    }
    // SAFETY: the caller gives a string.
    let existed = unsafe { libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, path, libc::F_OK) } == 0;
    let fd = make();
    let index = fd as usize;
    if fd >= 0 && index < DESCRIPTORS {
        if state.paths.len() <= index {
            state.paths.resize(index + 1, None);
        }
        state.paths[index] = Some(name.clone());
        let truncated = existed && writes && flags & libc::O_TRUNC != 0;
        let record = Record::Open { fd: fd as u64, path: Cow::Borrowed(&name), created: !existed, truncated };
        watch.record(&mut state, &record);
        WATCHED[index].store(true, Ordering::Release);
    }
    fd
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { open_at(libc::AT_FDCWD, path, flags, mode) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { open_at(libc::AT_FDCWD, path, flags, mode) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { open_at(folder, path, flags, mode) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { open_at(folder, path, flags, mode) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn creat(path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { open_at(libc::AT_FDCWD, path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    let make = || unsafe { libc::syscall(libc::SYS_close, fd) as c_int };
    let Some(watch) = watch_of(fd) else { return make() };
    let mut state = watch.lock();
    WATCHED[fd as usize].store(false, Ordering::Release);
    state.paths[fd as usize] = None;
    watch.record(&mut state, &Record::Close { fd: fd as u64 });
    make()
}

/// Writes pieces, one after the other, at `offset` or where the file stands. Stops as the system call would: at the first piece
/// that is not taken whole.
unsafe fn write_pieces(watch: &Watch, fd: c_int, pieces: &[iovec], offset: Option<off_t>) -> ssize_t {
    let mut state = watch.lock();
    let path = state.path(fd);
    let mut done = 0_usize;
    for piece in pieces {
        let mut length = piece.iov_len;
        let mut errno_after = None;
        match watch.effect(&mut state, Call::Write, &path, length) {
            Some(Effect::Short(taken, errno)) => {
                length = taken;
                errno_after = Some(errno);
            }
            Some(Effect::Fail(errno)) => {
                length = 0;
                errno_after = Some(errno);
            }
            None => {}
        }
        if length == 0 && piece.iov_len > 0 {
            return if done > 0 { done as ssize_t } else { fail(errno_after.unwrap_or(libc::EIO)) as ssize_t };
        }
        // SAFETY: the caller gives pieces that are there, and no more than that is written.
        let (written, at) = unsafe {
            match offset {
                Some(offset) => {
                    let at = offset + done as off_t;
                    (libc::syscall(libc::SYS_pwrite64, fd, piece.iov_base, length, at), at)
                }
                None => {
                    let written = libc::syscall(libc::SYS_write, fd, piece.iov_base, length);
                    let errno = errno();
                    let end = libc::syscall(libc::SYS_lseek, fd, 0, libc::SEEK_CUR);
                    fail(errno);
                    (written, end - written.max(0))
                }
            }
        };
        if written < 0 {
            return if done > 0 { done as ssize_t } else { -1 };
        }
        // SAFETY: so many bytes of the piece were just read by the kernel.
        let data = unsafe { std::slice::from_raw_parts(piece.iov_base.cast::<u8>(), written as usize) };
        watch.record(&mut state, &Record::Write { fd: fd as u64, offset: at as u64, data: Cow::Borrowed(data) });
        done += written as usize;
        if (written as usize) < piece.iov_len {
            break;
        }
    }
    done as ssize_t
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, data: *const c_void, length: size_t) -> ssize_t {
    // SAFETY: as the caller promises.
    unsafe {
        match watch_of(fd) {
            None => libc::syscall(libc::SYS_write, fd, data, length) as ssize_t,
            Some(watch) => write_pieces(watch, fd, &[iovec { iov_base: data.cast_mut(), iov_len: length }], None),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(fd: c_int, data: *const c_void, length: size_t, offset: off_t) -> ssize_t {
    // SAFETY: as the caller promises.
    unsafe {
        match watch_of(fd) {
            None => libc::syscall(libc::SYS_pwrite64, fd, data, length, offset) as ssize_t,
            Some(watch) => {
                write_pieces(watch, fd, &[iovec { iov_base: data.cast_mut(), iov_len: length }], Some(offset))
            }
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(fd: c_int, data: *const c_void, length: size_t, offset: off_t) -> ssize_t {
    // SAFETY: as the caller promises.
    unsafe { pwrite(fd, data, length, offset) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: as the caller promises.
    unsafe {
        match watch_of(fd) {
            None => libc::syscall(libc::SYS_writev, fd, pieces, count) as ssize_t,
            Some(watch) => write_pieces(watch, fd, std::slice::from_raw_parts(pieces, count as usize), None),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev(fd: c_int, pieces: *const iovec, count: c_int, offset: off_t) -> ssize_t {
    // SAFETY: as the caller promises.
    unsafe {
        match watch_of(fd) {
            None => libc::syscall(libc::SYS_pwritev, fd, pieces, count, offset, 0) as ssize_t,
            Some(watch) => write_pieces(watch, fd, std::slice::from_raw_parts(pieces, count as usize), Some(offset)),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev64(fd: c_int, pieces: *const iovec, count: c_int, offset: off_t) -> ssize_t {
    // SAFETY: as the caller promises.
    unsafe { pwritev(fd, pieces, count, offset) }
}

/// What a read is to fail with.
fn read_failure(fd: c_int, bytes: usize) -> Option<c_int> {
    let watch = watch_of(fd)?;
    let mut state = watch.lock();
    let path = state.path(fd);
    watch.effect(&mut state, Call::Read, &path, bytes).map(Effect::errno)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, data: *mut c_void, length: size_t) -> ssize_t {
    match read_failure(fd, length) {
        Some(errno) => fail(errno) as ssize_t,
        // SAFETY: as the caller promises.
        None => unsafe { libc::syscall(libc::SYS_read, fd, data, length) as ssize_t },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread(fd: c_int, data: *mut c_void, length: size_t, offset: off_t) -> ssize_t {
    match read_failure(fd, length) {
        Some(errno) => fail(errno) as ssize_t,
        // SAFETY: as the caller promises.
        None => unsafe { libc::syscall(libc::SYS_pread64, fd, data, length, offset) as ssize_t },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread64(fd: c_int, data: *mut c_void, length: size_t, offset: off_t) -> ssize_t {
    // SAFETY: as the caller promises.
    unsafe { pread(fd, data, length, offset) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate(fd: c_int, length: off_t) -> c_int {
    let make = || unsafe { libc::syscall(libc::SYS_ftruncate, fd, length) };
    let Some(watch) = watch_of(fd) else { return make() as c_int };
    let path = watch.lock().path(fd);
    on_path(watch, Call::Resize, &path, make, &Record::Resize { fd: fd as u64, length: length as u64 })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate64(fd: c_int, length: off_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { ftruncate(fd, length) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fallocate(fd: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int {
    let make = || unsafe { libc::syscall(libc::SYS_fallocate, fd, mode, offset, length) };
    let Some(watch) = watch_of(fd) else { return make() as c_int };
    let mut state = watch.lock();
    let path = state.path(fd);
    if let Some(effect) = watch.effect(&mut state, Call::Resize, &path, 0) {
        return fail(effect.errno());
    }
    // SAFETY: a seek to the end of a file that is written from its start does not hurt, and is undone.
    let size = unsafe {
        let here = libc::syscall(libc::SYS_lseek, fd, 0, libc::SEEK_CUR);
        let size = libc::syscall(libc::SYS_lseek, fd, 0, libc::SEEK_END);
        libc::syscall(libc::SYS_lseek, fd, here, libc::SEEK_SET);
        size
    };
    let result = make();
    // With FALLOC_FL_KEEP_SIZE nothing that could be read changes.
    if result == 0 && mode & libc::FALLOC_FL_KEEP_SIZE == 0 && offset + length > size {
        watch.record(&mut state, &Record::Resize { fd: fd as u64, length: (offset + length) as u64 });
    }
    result as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_fallocate(fd: c_int, offset: off_t, length: off_t) -> c_int {
    // SAFETY: as the caller promises. This one returns its error.
    if unsafe { fallocate(fd, 0, offset, length) } == 0 { 0 } else { errno() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    sync(fd, || unsafe { libc::syscall(libc::SYS_fsync, fd) as c_int })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    sync(fd, || unsafe { libc::syscall(libc::SYS_fdatasync, fd) as c_int })
}

fn sync(fd: c_int, make: impl FnOnce() -> c_int) -> c_int {
    let Some(watch) = watch_of(fd) else { return make() };
    let mut state = watch.lock();
    let path = state.path(fd);
    if let Some(effect) = watch.effect(&mut state, Call::Sync, &path, 0) {
        return fail(effect.errno());
    }
    let (began, micros) = (state.trace_bytes, state.rules.sync_micros);
    drop(state);
    if micros > 0 {
        std::thread::sleep(std::time::Duration::from_micros(micros));
    }
    let result = if watch.trace.is_some() { 0 } else { make() };
    if result == 0 {
        watch.record(&mut watch.lock(), &Record::Sync { fd: fd as u64, began });
    }
    result
}

/// It promises nothing about durability, so there is nothing to record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sync_file_range(fd: c_int, offset: off_t, length: off_t, flags: c_uint) -> c_int {
    if watch_of(fd).is_some_and(|watch| watch.trace.is_some()) {
        return 0;
    }
    // SAFETY: as the caller promises.
    unsafe { libc::syscall(libc::SYS_sync_file_range, fd, offset, length, flags) as c_int }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    let make = || unsafe { libc::syscall(libc::SYS_renameat, libc::AT_FDCWD, from, libc::AT_FDCWD, to) };
    // SAFETY: as the caller promises.
    let (Some((watch, old)), Some((_, new))) = (unsafe { (watch_path(from), watch_path(to)) }) else {
        return make() as c_int;
    };
    on_path(watch, Call::Rename, &new, make, &Record::Rename { from: Cow::Borrowed(&old), to: Cow::Borrowed(&new) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat(f: c_int, from: *const c_char, t: c_int, to: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        if watch_path(from).is_some() && watch_path(to).is_some() {
            return rename(from, to);
        }
        libc::syscall(libc::SYS_renameat, f, from, t, to) as c_int
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn link(from: *const c_char, to: *const c_char) -> c_int {
    let make = || unsafe { libc::syscall(libc::SYS_linkat, libc::AT_FDCWD, from, libc::AT_FDCWD, to, 0) };
    // SAFETY: as the caller promises.
    let (Some((watch, old)), Some((_, new))) = (unsafe { (watch_path(from), watch_path(to)) }) else {
        return make() as c_int;
    };
    on_path(watch, Call::Rename, &new, make, &Record::Link { from: Cow::Borrowed(&old), to: Cow::Borrowed(&new) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { unlinkat(libc::AT_FDCWD, path, 0) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmdir(path: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { unlinkat(libc::AT_FDCWD, path, libc::AT_REMOVEDIR) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    let make = || unsafe { libc::syscall(libc::SYS_unlinkat, folder, path, flags) };
    // SAFETY: as the caller promises.
    let Some((watch, name)) = (unsafe { watch_path(path) }) else { return make() as c_int };
    let path = Cow::Borrowed(name.as_slice());
    let folder = flags & libc::AT_REMOVEDIR != 0;
    let record = if folder { Record::RemoveFolder { path } } else { Record::Unlink { path } };
    on_path(watch, Call::Rename, &name, make, &record)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    let make = || unsafe { libc::syscall(libc::SYS_mkdirat, libc::AT_FDCWD, path, mode as c_uint) };
    // SAFETY: as the caller promises.
    let Some((watch, name)) = (unsafe { watch_path(path) }) else { return make() as c_int };
    on_path(watch, Call::Create, &name, make, &Record::MakeFolder { path: Cow::Borrowed(&name) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut timespec) -> c_int {
    // SAFETY: as the caller promises.
    let result = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int };
    if clock == libc::CLOCK_REALTIME
        && result == 0
        && let Some(watch) = WATCH.get()
        && watch.control.is_some()
    {
        let mut state = watch.lock();
        watch.read_rules(&mut state);
        // SAFETY: the kernel has just written there.
        unsafe { (*time).tv_sec += state.rules.clock_seconds };
    }
    result
}
