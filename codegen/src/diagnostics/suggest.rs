//! "Did you mean …?": the known name nearest to a misspelt one.

/// The candidate a misspelt `name` most likely meant, or `None` if none is close.
///
/// One edit is an insertion, a deletion, a replacement or a swap of two neighbours; letter case is
/// free. A third of the letters may differ, and always one. On a tie the first candidate wins.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.chars().take(MAX_LENGTH + 1).collect();
    if name.is_empty() || name.len() > MAX_LENGTH {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let letters: Vec<char> = candidate.chars().take(MAX_LENGTH + 1).collect();
        let limit = (name.len().max(letters.len()) / 3).max(1);
        if letters.len().abs_diff(name.len()) > limit || letters.len() <= 1 && name.len() <= 1 {
            continue;
        }
        let distance = distance(&name, &letters);
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Longer names are not misspelt words, and the distance takes quadratic time.
const MAX_LENGTH: usize = 100;

/// The optimal string alignment distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let same = |x: char, y: char| x.to_lowercase().eq(y.to_lowercase());
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(!same(a[i - 1], b[j - 1]));
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]) {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    const KEYS: [&str; 6] = ["func", "doc", "derivatives", "variants", "dtype", "dtypes"];

    #[test]
    fn finds_a_misspelt_key() {
        assert_eq!(nearest("derivates", KEYS), Some("derivatives"));
        assert_eq!(nearest("varaints", KEYS), Some("variants"));
        assert_eq!(nearest("dtpye", KEYS), Some("dtype"));
        assert_eq!(nearest("Doc", KEYS), Some("doc"));
        assert_eq!(nearest("Flaot", ["float", "int", "Tensor"]), Some("float"));
    }

    #[test]
    fn stays_silent_if_nothing_is_close() {
        assert_eq!(nearest("kernel", KEYS), None);
        assert_eq!(nearest("", KEYS), None);
        assert_eq!(nearest("x", ["y", "z"]), None);
        assert_eq!(nearest(&"x".repeat(1_000_000), KEYS), None);
    }
}
