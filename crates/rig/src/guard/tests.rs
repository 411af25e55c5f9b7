//! Each refusal is provoked on a real loop device, which requires root. Devices that this machine
//! lacks (dm, md, disks with serial numbers) are simulated by directories in place of /sys and
//! /proc.

mod contents;
mod dangers;
mod fixture;
mod images;
mod in_use;
mod limits;
mod lock;
mod path;
mod place;
mod root;
