//! Binaries of the VM from the inside of a thread of ours: one that grows, and one that is kept.
use crate::nif::*;

/// A binary of the VM that grows; handed over without a copy.
pub struct Growing {
    bin: ErlNifBinary,
    pub len: usize,
}

unsafe impl Send for Growing {}

impl Growing {
    pub fn new(capacity: usize) -> Option<Self> {
        unsafe {
            let mut bin = std::mem::zeroed();
            (enif_alloc_binary(capacity, &mut bin) != 0).then_some(Growing { bin, len: 0 })
        }
    }

    pub fn capacity(&self) -> usize {
        self.bin.size
    }

    /// False if there is no memory.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let wanted = self.len + bytes.len();
        unsafe {
            if wanted > self.bin.size && enif_realloc_binary(&mut self.bin, wanted.max(2 * self.bin.size)) == 0 {
                return false;
            }
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.bin.data.add(self.len), bytes.len());
        }
        self.len = wanted;
        true
    }

    pub fn into_term(mut self, env: Env) -> Term {
        unsafe {
            if self.len < self.bin.size {
                enif_realloc_binary(&mut self.bin, self.len);
            }
            let term = enif_make_binary(env, &mut self.bin);
            std::mem::forget(self);
            term
        }
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        unsafe { enif_release_binary(&mut self.bin) }
    }
}

/// The bytes of a binary of the VM, kept alive by a reference in an environment of its own: no copy.
pub struct Kept {
    env: Env,
    bytes: &'static [u8],
}

// The environment is only touched by its drop, and the bytes of a binary never change.
unsafe impl Send for Kept {}
unsafe impl Sync for Kept {}

impl Kept {
    /// None if the term is no binary.
    pub unsafe fn new(term: Term) -> Option<Self> {
        let env = enif_alloc_env();
        let copy = enif_make_copy(env, term);
        let mut bin: ErlNifBinary = std::mem::zeroed();
        if enif_inspect_binary(env, copy, &mut bin) == 0 {
            enif_free_env(env);
            return None;
        }
        Some(Kept { env, bytes: std::slice::from_raw_parts(bin.data, bin.size) })
    }
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        unsafe { enif_free_env(self.env) }
    }
}
