//! Every refusal is brought about on a real loop device, which needs root; what the machine at hand
//! lacks (dm, md, disks with serial numbers) is told to the guard by folders in place of /sys,
//! /proc.

mod contents;
mod dangers;
mod fixture;
mod images;
mod in_use;
mod lock;
mod path;
mod place;
mod root;
