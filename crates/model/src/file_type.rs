//! Types of the databases that fslab writes, as numbers in their headers
//! (sqlite.org/pragma.html#pragma_application_id).

/// Application ID of a run file ("fsla" in ASCII).
pub const RUN_FILE: i32 = 0x6673_6c61;

/// Application ID of a recording ("fstr" in ASCII).
pub const RECORDING: i32 = 0x6673_7472;

/// Application ID in the header of an SQLite database (sqlite.org/fileformat2.html, section 1.3);
/// `None` if the bytes are too short.
pub fn application_id(database: &[u8]) -> Option<i32> {
    let bytes = database.get(68..72)?;
    Some(i32::from_be_bytes(bytes.try_into().ok()?))
}
