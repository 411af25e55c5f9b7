//! Tasks done by this program.

use model::phase::{Deed, Task};

use super::{Places, archive, data, entries, hand::Hand, pack, source, tree, unpack};
use crate::EngineError;

/// Does the deed; everything it counts is in the hand afterwards.
pub(super) fn perform(
    task: &Task,
    places: Places<'_>,
    hand: &mut Hand<'_>,
) -> Result<(), EngineError> {
    let path = |spot| places.path(spot);
    match &task.deed {
        Deed::Touch { directory, count } => entries::touch(&path(directory), *count, hand),
        Deed::MakeDirectories { directory, count } => {
            entries::make_directories(&path(directory), *count, hand)
        }
        Deed::Find { directory } => entries::find(&path(directory), hand),
        Deed::RemoveTree { directory } => entries::remove_tree(&path(directory), hand),
        Deed::Copy { from, to, times } => {
            let source = places.place(from);
            for number in 1..=*times {
                let to = places.place(&copy_of(to, number, *times));
                data::copy(&source, &to, hand)?;
                hand.done(1)?;
            }
            Ok(())
        }
        Deed::Unpack { archive, into } => {
            let archive = places.place(archive);
            let into = places.place(into);
            unpack::unpack(&archive, &into, hand)
        }
        Deed::Pack { directory, archive, compression } => {
            let directory = places.place(directory);
            let archive = places.place(archive);
            pack::pack(&directory, &archive, *compression, hand)
        }
        Deed::CopyTree { from, to } => {
            let from = places.place(from);
            let to = places.place(to);
            tree::copy_tree(&from, &to, hand)
        }
        Deed::Zeros { file, size } => {
            let file = places.place(file);
            data::zeros(&file, *size, hand)
        }
        Deed::Split { file, piece, into } => {
            let file = places.place(file);
            let into = places.place(into);
            data::split(&file, *piece, &into, hand)
        }
        Deed::Read { file } => {
            let file = places.place(file);
            data::read(&file, hand)
        }
        Deed::Random { file, size } => {
            let file = places.place(file);
            data::random(&file, *size, task.seed, hand)
        }
        Deed::Archive { archive, files, compression } => {
            let archive = places.place(archive);
            source::write(&archive, *files, *compression, task.seed, hand)
        }
        Deed::Fetch { path: given, archive } => {
            let archive = places.place(archive);
            archive::fetch(given.as_ref(), &archive, hand)
        }
    }
}

/// The name of a copy: that of the deed if there is one only.
pub(super) fn copy_of(to: &model::phase::Spot, number: u32, times: u32) -> model::phase::Spot {
    let mut to = to.clone();
    if times > 1 {
        to.name = format!("{}.{number}", to.name);
    }
    to
}
