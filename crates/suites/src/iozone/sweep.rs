//! Automatic sweep over all powers of two. By default, small blocks are used only with small files.

use model::{Bytes, Value, WorkloadParameters, workload::ValueError};

/// In an `auto` sweep, files above this size are not combined with blocks below
/// [`CROSS_OVER_BLOCK`].
const CROSS_OVER_FILE: Bytes = Bytes::mib(16);
const CROSS_OVER_BLOCK: Bytes = Bytes::kib(64);

pub(super) fn points(point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    let cross_over = match point.word("sweep") {
        "auto" => true,
        "full" => false,
        _ => return Ok(vec![point]),
    };
    let files = powers(&point, "sweep_file_size_min", "sweep_file_size_max")?;
    let blocks = powers(&point, "sweep_block_size_min", "sweep_block_size_max")?;
    let mut points = Vec::new();
    for file in files {
        let fits = |block: &&Bytes| {
            **block <= file && !(cross_over && file > CROSS_OVER_FILE && **block < CROSS_OVER_BLOCK)
        };
        for block in blocks.iter().filter(fits) {
            let mut point = point.clone();
            // The parameters are identical to those of the same combination without a sweep.
            point.parameters.insert("sweep".into(), Value::Word("none".into()));
            point.parameters.insert("file_size".into(), Value::Size(file));
            point.parameters.insert("block_size".into(), Value::Size(*block));
            points.push(point);
        }
    }
    match points.is_empty() {
        true => Err(ValueError::new(
            "the sweep is empty: every block size is larger than every file size",
        )),
        false => Ok(points),
    }
}

fn powers(point: &WorkloadParameters, from: &str, to: &str) -> Result<Vec<Bytes>, ValueError> {
    let (first, last) = (point.size(from), point.size(to));
    if first > last {
        return Err(ValueError::new(format!("`{from}` ({first}) is larger than `{to}` ({last})")));
    }
    let double = |size: &Bytes| size.0.checked_mul(2).map(Bytes);
    Ok(std::iter::successors(Some(first), double).take_while(|size| *size <= last).collect())
}
