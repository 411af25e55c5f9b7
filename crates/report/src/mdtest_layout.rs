//! Rows of the tables of mdtest, which exports and imports share.

/// Phases in the order of the tables, with the names of the rows.
pub(crate) const ROWS: [(&str, &str); 10] = [
    ("directory-create", "Directory creation"),
    ("directory-stat", "Directory stat"),
    ("directory-rename", "Directory rename"),
    ("directory-remove", "Directory removal"),
    ("file-create", "File creation"),
    ("file-stat", "File stat"),
    ("file-read", "File read"),
    ("file-remove", "File removal"),
    ("tree-create", "Tree creation"),
    ("tree-remove", "Tree removal"),
];
