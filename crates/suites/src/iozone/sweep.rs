//! The automatic sweep: all powers of two, small records only with small files.

use model::{Bytes, Point, Value, workload::ValueError};

/// Files above this size skip records below [`CROSS_OVER_RECORD`] in an `auto` sweep.
const CROSS_OVER_FILE: Bytes = Bytes::mib(16);
const CROSS_OVER_RECORD: Bytes = Bytes::kib(64);

pub(super) fn points(point: Point) -> Result<Vec<Point>, ValueError> {
    let cross_over = match point.word("sweep") {
        "auto" => true,
        "full" => false,
        _ => return Ok(vec![point]),
    };
    let files = powers(&point, "sweep_file_min", "sweep_file_max")?;
    let records = powers(&point, "sweep_record_min", "sweep_record_max")?;
    let mut points = Vec::new();
    for file in files {
        let fits = |record: &&Bytes| {
            **record <= file
                && !(cross_over && file > CROSS_OVER_FILE && **record < CROSS_OVER_RECORD)
        };
        for record in records.iter().filter(fits) {
            let mut point = point.clone();
            // A point of a sweep is the point it would be if it had been named by itself.
            point.parameters.insert("sweep".into(), Value::Word("none".into()));
            point.parameters.insert("file".into(), Value::Size(file));
            point.parameters.insert("record".into(), Value::Size(*record));
            points.push(point);
        }
    }
    match points.is_empty() {
        true => Err(ValueError::new("the sweep is empty: every record is larger than every file")),
        false => Ok(points),
    }
}

fn powers(point: &Point, from: &str, to: &str) -> Result<Vec<Bytes>, ValueError> {
    let (first, last) = (point.size(from), point.size(to));
    if first > last {
        return Err(ValueError::new(format!("`{from}` ({first}) is larger than `{to}` ({last})")));
    }
    let double = |size: &Bytes| size.0.checked_mul(2).map(Bytes);
    Ok(std::iter::successors(Some(first), double).take_while(|size| *size <= last).collect())
}
