//! "Did you mean …?": the known name nearest to a misspelt one.

/// The candidate closest to a misspelt `name`, or `None` if none is close.
///
/// One edit is an insertion, a deletion, a replacement or a swap of two neighbours; letter case is
/// free. A third of the letters may differ, and always one. On a tie the first candidate wins.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = letters(name);
    if length == 0 || length > MAX_LENGTH {
        return None;
    }
    let name = name.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other = letters(candidate);
        let limit = (length.max(other) / 3).max(1);
        if other.abs_diff(length) > limit || other <= 1 && length <= 1 {
            continue;
        }
        let distance = strsim::osa_distance(&name, &candidate.to_lowercase());
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Longer names are not considered; the distance takes quadratic time.
const MAX_LENGTH: usize = 100;

/// The number of letters, up to a limit.
fn letters(name: &str) -> usize {
    name.chars().take(MAX_LENGTH + 1).count()
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
