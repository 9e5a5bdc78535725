//! What core_bench.c calls. The caller passes memory that is there for the call.
use sha3::{Digest, Sha3_256};

/// SHA3-256 of the `sha3` crate.
///
/// # Safety
/// `from` has `size` bytes, `to` has 32.
#[no_mangle]
pub unsafe extern "C" fn crate_sha3_256(from: *const u8, size: usize, to: *mut u8) {
    let digest = Sha3_256::digest(std::slice::from_raw_parts(from, size));
    std::ptr::copy_nonoverlapping(digest.as_ptr(), to, 32);
}

/// The permutation of the `keccak` crate.
///
/// # Safety
/// `lanes` has 25 lanes.
#[no_mangle]
pub unsafe extern "C" fn crate_f1600(lanes: *mut [u64; 25]) {
    keccak::f1600(&mut *lanes);
}
