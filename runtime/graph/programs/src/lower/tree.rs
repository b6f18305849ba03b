//! Trees of results: dictionaries, lists and tuples, which an export flattens.
//!
//! In: a tree as PyTorch's `pytree` writes it, `[1, {"type": "builtins.dict", "context": "[\"logits\"]", …}]`. Out: the path
//! of each leaf, `logits` or `hidden.0`.

use serde_json::Value as Json;

/// The paths of the results of a program, in their order: `None` for a result that has only a position. Empty if the file has
/// no tree that this reader understands; then all results have positions.
pub(super) fn output_paths(calls: &Json) -> Vec<Option<String>> {
    let text = calls.pointer("/0/signature/out_spec").and_then(Json::as_str);
    let tree: Option<Json> = text.and_then(|text| serde_json::from_str(text).ok());
    let mut paths = Vec::new();
    if let Some(root) = tree.as_ref().and_then(|tree| tree.get(1)) {
        leaves(root, &mut Vec::new(), &mut paths);
    }
    paths
}

/// Adds the leaves of a tree. Each level is one of the JSON text, whose depth its parser bounds.
fn leaves(tree: &Json, path: &mut Vec<String>, paths: &mut Vec<Option<String>>) {
    if tree.get("type").is_none_or(Json::is_null) {
        let is_named = path.iter().any(|part| part.parse::<usize>().is_err());
        return paths.push(is_named.then(|| path.join(".")));
    }
    let children = tree.get("children_spec").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    let context = tree.get("context").and_then(Json::as_str);
    let keys: Option<Vec<String>> = context.and_then(|text| serde_json::from_str(text).ok());
    let keys = keys.filter(|keys| keys.len() == children.len());
    for (position, child) in children.iter().enumerate() {
        path.push(keys.as_ref().map_or_else(|| position.to_string(), |keys| keys[position].clone()));
        leaves(child, path, paths);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_have_paths() {
        let leaf = r#"{"type": null, "context": null, "children_spec": []}"#;
        let list =
            format!(r#"{{"type": "builtins.list", "context": "null", "children_spec": [{leaf}, {leaf}]}}"#);
        let dict = format!(
            r#"{{"type": "builtins.dict", "context": "[\"logits\", \"hidden\"]", "children_spec": [{leaf}, {list}]}}"#
        );
        let pair =
            format!(r#"{{"type": "builtins.tuple", "context": "null", "children_spec": [{dict}, {leaf}]}}"#);
        let calls = |tree: &str| serde_json::json!([{"signature": {"out_spec": format!("[1, {tree}]")}}]);
        let paths = |tree: &str| {
            let paths = output_paths(&calls(tree)).into_iter();
            paths.map(|path| path.unwrap_or_default()).collect::<Vec<_>>()
        };
        assert_eq!(paths(&dict), ["logits", "hidden.0", "hidden.1"]);
        assert_eq!(paths(&pair), ["0.logits", "0.hidden.0", "0.hidden.1", ""]);
        assert_eq!(paths(&list), ["", ""]);
        assert_eq!(paths(leaf), [""]);
        assert!(output_paths(&Json::Null).is_empty() && paths("?").is_empty());
        // A context of another meaning, as that of a named tuple, leaves positions.
        let named = format!(r#"{{"type": "Pair", "context": "{{}}", "children_spec": [{leaf}, {leaf}]}}"#);
        assert_eq!(paths(&named), ["", ""]);
    }
}
