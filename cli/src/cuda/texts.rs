//! Texts of kernels, as `OPSMITH_CUDA_KEEP_TEXT` writes them.
//!
//! In: files and folders. Out: texts with the names of their sources, each once. Must not know compilers.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use opsmith_cuda::images::{ImageTarget, text_key};
use opsmith_runtime::internals;

/// The text of a kernel.
pub struct Text {
    /// The name of the source.
    pub name: String,
    /// The last line, which defines the kernel.
    pub line: String,
    /// The whole text.
    pub text: String,
    /// The key in archives.
    pub key: String,
}

/// The texts of files, and of the files `*.cu` of folders.
///
/// # Errors
/// If one cannot be read, or there are none.
pub fn read(places: &[PathBuf]) -> Result<Vec<Text>> {
    let mut files = Vec::new();
    for place in places {
        let before = files.len();
        if place.is_dir() {
            let entries = fs::read_dir(place).with_context(|| format!("cannot read {}", place.display()))?;
            let paths = entries.collect::<Result<Vec<_>, _>>()?.into_iter().map(|entry| entry.path());
            files.extend(paths.filter(|path| path.extension().is_some_and(|extension| extension == "cu")));
        } else {
            files.push(place.clone());
        }
        if files.len() == before {
            bail!(
                "{} has no texts (*.cu); a program writes those of its kernels if OPSMITH_CUDA_KEEP_TEXT names the folder",
                place.display()
            );
        }
    }
    files.sort();
    let texts = files.iter().map(|path| of_file(path)).collect::<Result<Vec<Text>>>()?;
    Ok(each_once(texts))
}

/// The texts, and those that follow from them: of each loop the lines for all ways through memory, and all of movement.
pub fn complete(mut texts: Vec<Text>) -> Vec<Text> {
    let mut more = Vec::new();
    for text in &texts {
        let head = text.text.trim_end().strip_suffix(&text.line);
        for line in internals::lines_of_loop(&text.line).into_iter().flatten() {
            more.extend(head.map(|head| Text::new(text.name.clone(), format!("{head}{line}\n"))));
        }
    }
    let (name, movement) = opsmith_cuda::movement_texts();
    texts.append(&mut more);
    texts.extend(movement.into_iter().map(|text| Text::new(name.to_owned(), text)));
    each_once(texts)
}

fn each_once(mut texts: Vec<Text>) -> Vec<Text> {
    let mut known = HashSet::new();
    texts.retain(|text| known.insert(text.key.clone()));
    texts
}

impl Text {
    fn new(name: String, text: String) -> Text {
        let line = text.trim_end().lines().next_back().unwrap_or_default().trim().to_owned();
        Text { name, line, key: text_key(&text), text }
    }

    /// The architectures of the text's images, of those that are asked for: PTX is that of the least architecture that the text names
    /// at least, and older machine code is left out, since such devices are not asked for the kernel.
    pub fn targets(&self, asked: &[ImageTarget]) -> Vec<ImageTarget> {
        let Some(least) = least_architecture(&self.text) else { return asked.to_vec() };
        let raised = |target: &ImageTarget| match *target {
            ImageTarget::Ptx(own) => Some(ImageTarget::Ptx(own.max(least))),
            other => (other.architecture() >= least).then_some(other),
        };
        let mut targets: Vec<ImageTarget> = asked.iter().filter_map(raised).collect();
        targets.sort();
        targets.dedup();
        targets
    }
}

fn of_file(path: &Path) -> Result<Text> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // The program adds the key.
    let is_key = |end: &str| end.len() == 32 && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = stem.rsplit_once('.').filter(|(_, end)| is_key(end)).map_or(&*stem, |(name, _)| name);
    Ok(Text::new(name.to_owned(), text))
}

/// The architecture that a text defines as its least.
fn least_architecture(text: &str) -> Option<i32> {
    let rest = text.lines().find_map(|line| line.strip_prefix("#define OPSMITH_LEAST_ARCHITECTURE "))?;
    rest.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_a_text_are_for_its_least_architecture_and_later_ones() {
        let targets = |text: &str, asked: &[&str]| {
            let asked: Vec<ImageTarget> = asked.iter().map(|target| target.parse().unwrap()).collect();
            let found = Text::new("k.cuh".to_owned(), text.to_owned()).targets(&asked);
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let least = "#define OPSMITH_LEAST_ARCHITECTURE 80\nkernel";
        assert_eq!(targets(least, &["sm_75", "sm_90", "compute_75"]), ["sm_90", "compute_80"]);
        assert_eq!(
            targets(least, &["compute_75", "compute_80", "compute_90a"]),
            ["compute_80", "compute_90a"]
        );
        assert_eq!(targets("kernel", &["sm_75", "compute_75"]), ["sm_75", "compute_75"]);
    }
}
