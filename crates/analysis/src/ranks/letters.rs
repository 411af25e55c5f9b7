//! Compact letter display: cells of a family that share a letter do not differ significantly.

/// Compact letters by insertion and absorption, followed by a removal of redundant letters.
///
/// Source: Piepho, "An algorithm for a letter-based representation of all-pairwise comparisons",
/// Journal of Computational and Graphical Statistics 13, 2004. `order` lists the cells, the best
/// first; `apart` contains the pairs that differ significantly. Letter `a` is the column that
/// contains the best cell.
pub(super) fn letters(order: &[usize], apart: &[(usize, usize)]) -> Vec<String> {
    // Columns hold positions in `order`, so that sorting columns sorts them by their best cell.
    let place = |cell: usize| order.iter().position(|other| *other == cell);
    let places: Vec<(usize, usize)> =
        apart.iter().filter_map(|(one, other)| Some((place(*one)?, place(*other)?))).collect();
    let mut columns: Vec<Vec<usize>> = vec![(0..order.len()).collect()];
    for &(one, other) in &places {
        let (split, kept): (Vec<_>, Vec<_>) = columns
            .into_iter()
            .partition(|column| column.contains(&one) && column.contains(&other));
        columns = kept;
        for column in split {
            for absent in [one, other] {
                columns.push(column.iter().copied().filter(|cell| *cell != absent).collect());
            }
        }
        absorb(&mut columns);
    }
    sweep(&mut columns, order.len(), &places);
    columns.sort();
    let mut letters = vec![String::new(); order.len()];
    for (column, cells) in columns.iter().enumerate() {
        cells.iter().for_each(|place| letters[order[*place]].push_str(&letter(column)));
    }
    letters
}

/// Removes columns that are subsets of another column.
fn absorb(columns: &mut Vec<Vec<usize>>) {
    columns.sort();
    columns.dedup();
    let all = columns.clone();
    let inside = |small: &[usize], large: &[usize]| {
        small.len() < large.len() && small.iter().all(|cell| large.contains(cell))
    };
    columns.retain(|column| !all.iter().any(|other| inside(column, other)));
}

/// Removes a column if other columns contain all its pairs and all its cells.
fn sweep(columns: &mut Vec<Vec<usize>>, cells: usize, apart: &[(usize, usize)]) {
    let joined = |columns: &[Vec<usize>], one: usize, other: usize| {
        columns.iter().any(|column| column.contains(&one) && column.contains(&other))
    };
    let together: Vec<(usize, usize)> = (0..cells)
        .flat_map(|one| (one + 1..cells).map(move |other| (one, other)))
        .filter(|(one, other)| !apart.contains(&(*one, *other)) && !apart.contains(&(*other, *one)))
        .collect();
    for column in (0..columns.len()).rev() {
        let mut without = columns.clone();
        without.remove(column);
        let said = together.iter().all(|(one, other)| joined(&without, *one, *other));
        let everyone = (0..cells).all(|cell| without.iter().any(|c| c.contains(&cell)));
        if said && everyone {
            *columns = without;
        }
    }
}

/// Letters a … z, then a1 … z1, and so on.
fn letter(column: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(column % 26).unwrap_or(0));
    match column / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}
