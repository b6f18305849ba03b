//! The models of an archive, by name.
//!
//! In: an archive. Out: the member that has the wanted program, after checks of the archive's own format. Must know nothing of
//! programs.

use opsmith_runtime::error::{Error, Result};

use crate::archive::Archive;

/// The member of an archive that is a program.
pub(crate) struct Member {
    /// The name of the model.
    pub name: String,
    pub member: String,
}

/// The program of PyTorch before 2.8, which had no model names.
const OLD_PROGRAM: &str = "serialized_exported_program.json";

/// The name of that program here.
const ONLY: &str = "model";

/// The model of a name in an archive, or the only one.
///
/// # Errors
/// If it is no archive of programs, or has no such model, or several and none is named.
pub(crate) fn member(archive: &mut Archive, wanted: Option<&str>) -> Result<Member> {
    if !archive.has("archive_format") {
        if !archive.has(OLD_PROGRAM) {
            return Err(Error::io("the archive is no exported program: it has no `archive_format`")
                .with_help(
                    "a program is the file that `torch.export.save` writes; one of `torch.save` has no graph",
                ));
        }
        return match wanted {
            None | Some(ONLY) => Ok(Member { name: ONLY.to_owned(), member: OLD_PROGRAM.to_owned() }),
            Some(name) => Err(missing(name, &[ONLY.to_owned()])),
        };
    }
    let format = archive.text("archive_format")?;
    if format.trim() != "pt2" {
        return Err(Error::io(format!(
            "the archive has the format {format:?}, and this reader knows \"pt2\""
        )));
    }
    if archive.has("byteorder") && archive.text("byteorder")?.trim() != "little" {
        return Err(Error::io("the weights of the archive are not little-endian")
            .with_help("save the program on a little-endian machine"));
    }
    let names = archive.names();
    let model = |name: &String| Some(name.strip_prefix("models/")?.strip_suffix(".json")?.to_owned());
    let models: Vec<String> = names.iter().filter_map(model).collect();
    let name = match (wanted, &models[..]) {
        (_, []) => {
            return Err(Error::io("the archive has no model")
                .with_help("save the program again with `torch.export.save`"));
        }
        (Some(name), _) if !models.iter().any(|model| model == name) => return Err(missing(name, &models)),
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, _) => {
            return Err(Error::io(format!("the archive has several models: {}", models.join(", ")))
                .with_help("name one of them: `Program::load_model`, `opsmith-run --model NAME`"));
        }
    };
    Ok(Member { member: format!("models/{name}.json"), name: name.to_owned() })
}

fn missing(name: &str, models: &[String]) -> Error {
    Error::io(format!("the archive has no model `{name}`"))
        .with_help(format!("its models are {}", models.join(", ")))
}
