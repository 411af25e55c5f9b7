//! Hashes of external data, in hexadecimal.

use sha2::{Digest, Sha256};

/// SHA-256 of bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
