//! Tasks done by fslab itself.

use model::phase::{Task, TaskOperation};

use super::{
    TaskDirectories, archive, context::TaskContext, data, entries, pack, source, tree, unpack,
};
use crate::EngineError;

/// Runs the operation; counts are added to the context.
pub(super) fn perform(
    task: &Task,
    directories: TaskDirectories<'_>,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let path = |task_path| directories.path(task_path);
    match &task.operation {
        TaskOperation::Touch { directory, count } => {
            entries::touch(&path(directory), *count, context)
        }
        TaskOperation::MakeDirectories { directory, count } => {
            entries::make_directories(&path(directory), *count, context)
        }
        TaskOperation::Find { directory } => entries::find(&path(directory), context),
        TaskOperation::RemoveTree { directory } => entries::remove_tree(&path(directory), context),
        TaskOperation::Copy { from, to, times } => {
            let source = directories.resolve(from);
            for number in 1..=*times {
                let to = directories.resolve(&copy_of(to, number, *times));
                data::copy(&source, &to, context)?;
                context.done(1)?;
            }
            Ok(())
        }
        TaskOperation::Unpack { archive, into } => {
            let archive = directories.resolve(archive);
            let into = directories.resolve(into);
            unpack::unpack(&archive, &into, context)
        }
        TaskOperation::Pack { directory, archive, compression } => {
            let directory = directories.resolve(directory);
            let archive = directories.resolve(archive);
            pack::pack(&directory, &archive, *compression, context)
        }
        TaskOperation::CopyTree { from, to } => {
            let from = directories.resolve(from);
            let to = directories.resolve(to);
            tree::copy_tree(&from, &to, context)
        }
        TaskOperation::Zeros { file, size } => {
            let file = directories.resolve(file);
            data::zeros(&file, *size, context)
        }
        TaskOperation::Split { file, piece, into } => {
            let file = directories.resolve(file);
            let into = directories.resolve(into);
            data::split(&file, *piece, &into, context)
        }
        TaskOperation::Read { file } => {
            let file = directories.resolve(file);
            data::read(&file, context)
        }
        TaskOperation::Random { file, size } => {
            let file = directories.resolve(file);
            data::random(&file, *size, task.seed, context)
        }
        TaskOperation::Archive { archive, files, compression } => {
            let archive = directories.resolve(archive);
            source::write(&archive, *files, *compression, task.seed, context)
        }
        TaskOperation::Fetch { path: given, archive } => {
            let archive = directories.resolve(archive);
            archive::fetch(given.as_ref(), &archive, context)
        }
    }
}

/// Path of a copy: the path of the operation if there is only one copy, otherwise with a number.
pub(super) fn copy_of(
    to: &model::phase::TaskPath,
    number: u32,
    times: u32,
) -> model::phase::TaskPath {
    let mut to = to.clone();
    if times > 1 {
        to.name = format!("{}.{number}", to.name);
    }
    to
}
