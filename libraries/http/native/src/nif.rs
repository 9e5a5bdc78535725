//! The NIF API as this library needs it: atoms, resources, terms. Everything unsafe about terms is here.
//!
//! We register our own function table and resource types rather than rustler::init!'s: they must survive a reload and a
//! purge of the module while I/O threads run (see `types`).
use std::cell::RefCell;
use std::ffi::CString;
use std::mem::{align_of, size_of};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::OnceLock;

pub use rustler::sys::*;

pub type Env = *mut ErlNifEnv;
pub type Term = ErlNifTerm;

macro_rules! atoms {
    ($($name:ident = $text:expr),* $(,)?) => {
        pub struct Atoms { $(pub $name: Term),* }
        fn make_atoms(env: Env) -> Atoms {
            Atoms { $($name: unsafe { enif_make_atom_len(env, $text.as_ptr().cast(), $text.len()) }),* }
        }
    };
}

atoms! {
    ok = "ok", error = "error", closed = "closed", wait = "wait", true_ = "true", false_ = "false",
    undefined = "undefined", none = "none", tame_http = "tame_http", requests = "requests", body = "body",
    room = "room", gone = "gone", stopped = "stopped", panicked = "panicked", contained = "contained", more = "more", done = "done",
    unread = "unread",
    stream = "stream", http = "http", https = "https", body_limit = "body_limit",
    nif_panicked = "nif_panicked", tls = "tls",
    h10 = "HTTP/1.0", h11 = "HTTP/1.1", h2 = "HTTP/2",
    ip = "ip", port = "port", io_threads = "io_threads", h2c = "h2c", max_in_flight = "max_in_flight",
    max_waiting = "max_waiting", max_connections = "max_connections", max_streams = "max_streams",
    body_memory = "body_memory", header_timeout_ms = "header_timeout_ms",
    request_timeout_ms = "request_timeout_ms", idle_timeout_ms = "idle_timeout_ms",
    wait_timeout_ms = "wait_timeout_ms", credit = "credit",
    answered = "answered", refused = "refused", failed = "failed",
    in_flight = "in_flight", waiting = "waiting", connections = "connections", open_requests = "open_requests",
    connections_total = "connections_total", accept_errors = "accept_errors", batches = "batches",
    wakes = "wakes", acceptors = "acceptors",
}

static ATOMS: OnceLock<Atoms> = OnceLock::new();

pub fn atoms() -> &'static Atoms {
    ATOMS.get().expect("load has made the atoms")
}

/// A resource type of this library. The address as a number, because a pointer is not Sync.
#[derive(Clone, Copy)]
pub struct Type(usize);

pub struct Types {
    pub server: Type,
    pub acceptor: Type,
    pub request: Type,
    pub watch: Type,
}

/// Opened once in the life of this mapping, and never again: a reload of the module finds it here, and references that
/// were made before a reload stay good. The VM frees a type with its last object, so `load` leaves one of each for ever;
/// with it the VM never unmaps the library either, in which our threads run.
static TYPES: OnceLock<Types> = OnceLock::new();

pub fn types() -> &'static Types {
    TYPES.get().expect("load has opened the types")
}

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What this thread's last panic said, and where it was.
pub fn last_panic() -> String {
    LAST_PANIC.with(|last| last.borrow().clone())
}

type Dtor = unsafe extern "C" fn(Env, *mut libc::c_void);

unsafe fn open_type(env: Env, name: &str, dtor: Dtor, down: Option<ErlNifResourceDown>) -> Option<Type> {
    // Another build of this library has types of its own; its objects must not become ours.
    let name = CString::new(format!("tame_http_{name}_{:p}", &TYPES)).ok()?;
    let mut init: ErlNifResourceTypeInit = std::mem::zeroed();
    init.dtor = dtor as *const ErlNifResourceDtor;
    if let Some(down) = down {
        init.down = down as *const ErlNifResourceDown;
    }
    let mut tried = ErlNifResourceFlags::ERL_NIF_RT_CREATE;
    let flags = ErlNifResourceFlags::ERL_NIF_RT_CREATE;
    let opened = enif_open_resource_type_x(env, name.as_ptr(), &init, flags, &mut tried);
    // One byte that nobody initializes, refers to or releases: it keeps the type.
    if opened.is_null() || enif_alloc_resource(opened, 1).is_null() {
        return None;
    }
    Some(Type(opened as usize))
}

/// Atoms and types, at the first load in this mapping. False if the VM has no memory for them.
pub unsafe fn load(env: Env, down: ErlNifResourceDown, dtors: [Dtor; 4]) -> bool {
    ATOMS.get_or_init(|| {
        // This library has a hook of its own: another one's panics do not come here.
        std::panic::set_hook(Box::new(|panic| LAST_PANIC.with(|last| *last.borrow_mut() = panic.to_string())));
        make_atoms(env)
    });
    if TYPES.get().is_some() {
        return true;
    }
    let opened = (
        open_type(env, "server", dtors[0], None),
        open_type(env, "acceptor", dtors[1], None),
        open_type(env, "request", dtors[2], None),
        open_type(env, "watch", dtors[3], Some(down)),
    );
    let (Some(server), Some(acceptor), Some(request), Some(watch)) = opened else { return false };
    TYPES.set(Types { server, acceptor, request, watch }).is_ok()
}

/// Moves `value` into a new resource, which the caller releases.
pub unsafe fn new_resource<T>(kind: Type, value: T) -> *const T {
    const { assert!(align_of::<T>() <= 8) };
    let object = enif_alloc_resource(kind.0 as *const ErlNifResourceType, size_of::<T>()) as *mut T;
    object.write(value);
    object
}

/// Moves `value` into a new resource; the term is its only owner.
pub unsafe fn make_resource<T>(env: Env, kind: Type, value: T) -> Term {
    let object = new_resource(kind, value);
    let term = enif_make_resource(env, object.cast());
    enif_release_resource(object.cast());
    term
}

/// Valid while the caller's term is, that is during a NIF call.
pub unsafe fn get_resource<'a, T>(env: Env, term: Term, kind: Type) -> Result<&'a T, Fault> {
    let mut object = std::ptr::null();
    match enif_get_resource(env, term, kind.0 as *const ErlNifResourceType, &mut object) {
        0 => Err(Fault::Badarg),
        _ => Ok(&*object.cast::<T>()),
    }
}

pub unsafe extern "C" fn drop_resource<T>(_env: Env, object: *mut libc::c_void) {
    guard((), || std::ptr::drop_in_place(object.cast::<T>()))
}

/// Runs what may panic at a border that no panic may cross.
pub fn guard<R>(otherwise: R, f: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => value,
        Err(payload) => {
            std::mem::forget(payload); // its drop may panic too
            otherwise
        }
    }
}

pub enum Fault {
    Badarg,
    /// `{error, Term}` as the value.
    Error(Term),
}

pub type Return = Result<Term, Fault>;

pub unsafe fn call(env: Env, argc: i32, argv: *const Term, f: unsafe fn(Env, &[Term]) -> Return) -> Term {
    let args = std::slice::from_raw_parts(argv, argc as usize);
    guard(None, || Some(f(env, args))).map_or_else(
        || enif_raise_exception(env, atoms().nif_panicked),
        |result| match result {
            Ok(term) => term,
            Err(Fault::Badarg) => enif_make_badarg(env),
            Err(Fault::Error(reason)) => tuple(env, &[atoms().error, reason]),
        },
    )
}

pub fn tuple(env: Env, elements: &[Term]) -> Term {
    unsafe { enif_make_tuple_from_array(env, elements.as_ptr(), elements.len() as u32) }
}

pub fn binary(env: Env, bytes: &[u8]) -> Term {
    unsafe {
        let mut term = std::mem::zeroed();
        let to = enif_make_new_binary(env, bytes.len(), &mut term);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        term
    }
}

pub fn integer(env: Env, n: u64) -> Term {
    unsafe { enif_make_uint64(env, n) }
}

pub fn list(env: Env, elements: &[Term]) -> Term {
    unsafe { enif_make_list_from_array(env, elements.as_ptr(), elements.len() as u32) }
}

pub fn boolean(value: bool) -> Term {
    if value { atoms().true_ } else { atoms().false_ }
}

pub unsafe fn get_u64(env: Env, term: Term) -> Result<u64, Fault> {
    let mut n = 0;
    if enif_get_uint64(env, term, &mut n) == 0 { Err(Fault::Badarg) } else { Ok(n) }
}

/// The bytes of a binary, or of iodata, which is copied. Valid during the call.
pub unsafe fn get_bytes<'a>(env: Env, term: Term) -> Result<&'a [u8], Fault> {
    let mut bin: ErlNifBinary = std::mem::zeroed();
    if enif_inspect_binary(env, term, &mut bin) == 0 && enif_inspect_iolist_as_binary(env, term, &mut bin) == 0 {
        return Err(Fault::Badarg);
    }
    if bin.size == 0 {
        return Ok(&[]);
    }
    Ok(std::slice::from_raw_parts(bin.data, bin.size))
}

pub unsafe fn get_tuple<'a>(env: Env, term: Term, arity: i32) -> Result<&'a [Term], Fault> {
    let (mut n, mut elements) = (0, std::ptr::null());
    if enif_get_tuple(env, term, &mut n, &mut elements) == 0 || n != arity {
        return Err(Fault::Badarg);
    }
    Ok(std::slice::from_raw_parts(elements, n as usize))
}

pub unsafe fn each(env: Env, list: Term, mut f: impl FnMut(Term) -> Result<(), Fault>) -> Result<(), Fault> {
    let (mut head, mut tail) = (list, list);
    while enif_get_list_cell(env, tail, &mut head, &mut tail) != 0 {
        f(head)?;
    }
    if enif_is_empty_list(env, tail) == 0 { Err(Fault::Badarg) } else { Ok(()) }
}

pub unsafe fn get_key(env: Env, map: Term, key: Term) -> Result<Term, Fault> {
    let mut value = map;
    if enif_get_map_value(env, map, key, &mut value) == 0 { Err(Fault::Badarg) } else { Ok(value) }
}

pub unsafe fn self_pid(env: Env) -> ErlNifPid {
    let mut pid = std::mem::zeroed();
    enif_self(env, &mut pid);
    pid
}

pub fn is_same(one: &ErlNifPid, other: &ErlNifPid) -> bool {
    unsafe { enif_compare_pids(one, other) == 0 }
}

/// An environment for messages, of one thread.
pub struct MessageEnv(Env);

impl MessageEnv {
    pub fn new() -> Self {
        MessageEnv(unsafe { enif_alloc_env() })
    }

    /// Builds a message and sends it. False if the process is not alive.
    pub fn send(&self, to: &ErlNifPid, build: impl FnOnce(Env) -> Term) -> bool {
        unsafe {
            let message = build(self.0);
            let sent = enif_send(std::ptr::null_mut(), to, self.0, message) != 0;
            enif_clear_env(self.0);
            sent
        }
    }
}

impl Drop for MessageEnv {
    fn drop(&mut self) {
        unsafe { enif_free_env(self.0) }
    }
}
