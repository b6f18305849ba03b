//! Files that kernels come from: opened once, judged by the open file, read within a bound.
//!
//! In: a path as a user wrote it. Out: the canonical path of the file that was opened, which is the only one
//! that is used from then on, and its content, which is read once. A path that is looked up a second time can lead to another
//! file: a bare name to a folder of `LD_LIBRARY_PATH`, a link to outside of the allowed folders. Must not
//! know the content of the files.

use std::cell::OnceCell;
use std::env;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use opsmith_runtime::error::{Error, Result};

/// The largest library or source that is read, in bytes.
const LARGEST: u64 = 1 << 30;
/// How often a file that is replaced while it is opened is opened again.
const ATTEMPTS: usize = 100;

/// A file that was opened, and is a regular one.
#[derive(Debug)]
pub(super) struct KernelFile {
    path: PathBuf,
    file: File,
    /// Its state when it was opened.
    facts: Metadata,
    content: OnceCell<Vec<u8>>,
}

impl KernelFile {
    /// Opens a file wherever it is, as one of the cache.
    ///
    /// # Errors
    /// If it cannot be read, is a folder, a device or a pipe, or is too large.
    pub fn open(path: &Path) -> Result<KernelFile> {
        for _ in 0..ATTEMPTS {
            if let Some(file) = KernelFile::try_open(path)? {
                return Ok(file);
            }
        }
        Err(Error::io(format!("{} is replaced again and again while it is opened", path.display()))
            .with_help("try again when it is whole"))
    }

    /// Opens a file, unless it is replaced by another one meanwhile.
    fn try_open(path: &Path) -> Result<Option<KernelFile>> {
        let (file, facts) = open_regular(path)?;
        let opened = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
            .or_else(|_| fs::canonicalize(path))
            .map_err(|error| unreadable(path, &error))?;
        let same = |now: Metadata| (now.dev(), now.ino()) == (facts.dev(), facts.ino());
        let stays = fs::symlink_metadata(&opened).is_ok_and(same);
        Ok(stays.then(|| KernelFile { path: opened, file, facts, content: OnceCell::new() }))
    }

    /// Opens a file that a user named. Its canonical path must lie in a folder that `OPSMITH_AOT_ALLOW`
    /// names.
    ///
    /// An attacker who could exchange a part of that path afterwards can write to an allowed folder, and
    /// could have placed a library there.
    ///
    /// # Errors
    /// As [`KernelFile::open`]; or if the file lies outside of the allowed folders.
    pub fn allowed(path: &Path) -> Result<KernelFile> {
        let file = KernelFile::open(path)?;
        check_allowed(&file.path)?;
        Ok(file)
    }

    /// The canonical path: absolute, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its state when it was opened.
    pub fn facts(&self) -> &Metadata {
        &self.facts
    }

    /// All that is in it.
    ///
    /// # Errors
    /// If it cannot be read, or is too large.
    pub fn read(&self) -> Result<&[u8]> {
        if let Some(content) = self.content.get() {
            return Ok(content);
        }
        let content = read_all(&self.file, &self.facts, &self.path)?;
        Ok(self.content.get_or_init(|| content))
    }
}

/// The content of a file, and its state when it was opened: of one that is only looked at, so that it does not matter where it
/// lies.
///
/// # Errors
/// As [`KernelFile::open`].
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, Metadata)> {
    let (file, facts) = open_regular(path)?;
    Ok((read_all(&file, &facts, path)?, facts))
}

/// Opens a regular file, with its state then.
fn open_regular(path: &Path) -> Result<(File, Metadata)> {
    let unreadable = |error: &std::io::Error| unreadable(path, error);
    // Looked at before it is opened: opening a device or a pipe alone may do something, or wait.
    check_kind(path, &fs::metadata(path).map_err(|error| unreadable(&error))?)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| unreadable(&error))?;
    let facts = file.metadata().map_err(|error| unreadable(&error))?;
    check_kind(path, &facts)?;
    Ok((file, facts))
}

/// All that is in a file of that state, in as few pieces as the system gives.
fn read_all(mut file: &File, facts: &Metadata, path: &Path) -> Result<Vec<u8>> {
    // One more, since the end is seen by a read of nothing. A file of the system may say that it has no bytes, and have any number.
    let mut content = vec![0; facts.len() as usize + 1];
    let mut length = 0;
    loop {
        match file.read(&mut content[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(path, &error)),
        }
        if length as u64 > LARGEST {
            return Err(too_large(path));
        }
        if length == content.len() {
            content.resize(length * 2, 0);
        }
    }
    content.truncate(length);
    Ok(content)
}

/// The error of a file that cannot be read.
fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("cannot read {}: {error}", path.display()))
}

fn check_kind(path: &Path, facts: &Metadata) -> Result<()> {
    let kind = facts.file_type();
    if kind.is_file() {
        return if facts.len() > LARGEST { Err(too_large(path)) } else { Ok(()) };
    }
    let what = match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(Error::io(format!("{} is {what}, no file", path.display()))
        .with_help("name a shared object, or a source that ends in .cc, .cpp or .cu"))
}

#[cold]
fn too_large(path: &Path) -> Error {
    Error::io(format!("{} has more than {} MiB", path.display(), LARGEST >> 20))
        .with_help("no library or source of kernels is so large; is it the right file?")
}

/// Refuses a canonical path outside the folders that `OPSMITH_AOT_ALLOW` names, separated by colons. Without
/// it, every file is allowed.
fn check_allowed(path: &Path) -> Result<()> {
    let Some(list) = env::var_os("OPSMITH_AOT_ALLOW") else { return Ok(()) };
    let folders: Vec<PathBuf> =
        env::split_paths(&list).filter(|folder| !folder.as_os_str().is_empty()).collect();
    let inside = |folder: &PathBuf| fs::canonicalize(folder).is_ok_and(|folder| path.starts_with(folder));
    if folders.iter().any(inside) {
        return Ok(());
    }
    let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    Err(Error::value(format!("{} is outside the folders that kernels may be loaded from", path.display()))
        .with_help(match folders.as_slice() {
            [] => "OPSMITH_AOT_ALLOW names no folder; unset it to allow all".to_owned(),
            folders => format!(
                "OPSMITH_AOT_ALLOW names {}; move the file there, or add its folder",
                folders.join(", ")
            ),
        }))
}
