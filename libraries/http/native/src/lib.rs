//! tame_http's native half: NIFs by which Erlang starts servers and answers requests. HTTP/1 is hyper's, HTTP/2
//! is h2's, on I/O threads of our own (`io`); no BEAM thread waits for a socket here. This file is the library as the VM loads it.
mod answering;
mod binaries;
mod body;
mod connection;
mod filter;
mod frames;
mod http1;
mod http2;
mod io;
mod nif;
mod places;
mod request;
mod request_nifs;
mod server;
mod server_nifs;
mod strict;
mod tls;
mod upload;
mod wire;

use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::OnceLock;

use nif::*;
use request::Reference;
use request_nifs::*;
use server_nifs::*;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What a build tells the next one of itself, by the VM: the only thing that two builds share, so it never changes.
#[repr(C)]
struct Build {
    /// Which mapping this is.
    identity: usize,
    io_threads: AtomicUsize,
}

static BUILD: OnceLock<&'static Build> = OnceLock::new();

fn build() -> &'static Build {
    // For ever: the VM keeps the address.
    let new = || Build { identity: std::ptr::addr_of!(BUILD) as usize, io_threads: AtomicUsize::new(0) };
    BUILD.get_or_init(|| Box::leak(Box::new(new())))
}

unsafe extern "C" fn load(env: Env, data: *mut *mut libc::c_void, _: Term) -> i32 {
    let dtors = [
        drop_resource::<Handle>,
        drop_resource::<Joined>,
        drop_resource::<Reference>,
        drop_resource::<Watch>,
    ];
    guard(1, || {
        *data = build() as *const Build as *mut libc::c_void;
        // Last, because the VM takes back the types of a load that fails, and we open them once.
        if nif::load(env, process_down, dtors) { 0 } else { 1 }
    })
}

/// The same file again is the same mapping: types and servers go on. Another build is refused while servers of the old one
/// run: it could not answer their requests.
unsafe extern "C" fn upgrade(
    env: Env,
    data: *mut *mut libc::c_void,
    old: *mut *mut libc::c_void,
    info: Term,
) -> i32 {
    let before = *old as *const Build;
    let other = !before.is_null() && (*before).identity != build().identity;
    if other && (*before).io_threads.load(SeqCst) > 0 {
        return 2;
    }
    load(env, data, info)
}

macro_rules! table {
    ($($name:literal / $arity:literal = $function:path, $flags:expr;)*) => {
        [$({
            unsafe extern "C" fn raw(env: Env, argc: i32, argv: *const Term) -> Term {
                call(env, argc, argv, $function)
            }
            ErlNifFunc { name: $name.as_ptr(), arity: $arity, function: raw, flags: $flags }
        }),*]
    };
}

const DIRTY_IO: u32 = ERL_NIF_DIRTY_JOB_IO_BOUND;

#[no_mangle]
pub extern "C" fn nif_init() -> *const ErlNifEntry {
    let functions = table! {
        c"open"/1 = open, DIRTY_IO;
        c"accept"/1 = accept, 0;
        c"close"/2 = close, 0;
        c"join"/1 = join, 0;
        c"take"/1 = take, 0;
        c"credit"/2 = credit, 0;
        c"set_static"/2 = set_static, DIRTY_IO;
        c"info"/1 = info, 0;
        c"reply"/4 = reply, 0;
        c"start"/3 = start, 0;
        c"chunk"/2 = chunk, 0;
        c"finish"/2 = finish, 0;
        c"read"/2 = read, 0;
        c"unread"/1 = unread, 0;
        c"watch"/1 = watch, 0;
        c"id"/1 = request_id, 0;
        c"is_alive"/1 = is_alive, 0;
    };
    // The VM keeps both for as long as the library is loaded, and it never is unloaded.
    let functions = Box::leak(Box::new(functions));
    let mut entry = ErlNifEntry::new(c"tame_http_nif", functions, load);
    entry.upgrade = Some(upgrade);
    entry.options = ERL_NIF_ENTRY_OPTIONS;
    Box::leak(Box::new(entry))
}
