//! Values that replace those of a specification, and errors of TOML in plain words.

/// The message of the TOML library, without the names of Rust's types.
pub(super) fn plain(message: &str) -> String {
    let whole = ["u64", "u32", "u16", "usize"].map(|kind| format!("expected {kind}"));
    let plain = whole.iter().fold(message.to_string(), |text, kind| text.replace(kind, "expected a whole number"));
    plain.replace("expected f64", "expected a number").trim_end().to_string()
}

/// Sets one dotted key to a TOML value (a bare word counts as a string).
pub(super) fn apply_setting(table: &mut toml::Table, setting: &str) -> Result<(), String> {
    let (key, text) = setting.split_once('=').ok_or("is not key=value")?;
    let value = toml::from_str::<toml::Table>(&format!("v = {text}"))
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| toml::Value::String(text.into()));
    let mut path: Vec<&str> = key.split('.').collect();
    let last = path.pop().filter(|k| !k.is_empty()).ok_or("has an empty key")?;
    let mut at = table;
    for part in path {
        at = at
            .entry(part)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()))
            .as_table_mut()
            .ok_or_else(|| format!("{part} is not a table"))?;
    }
    at.insert(last.into(), value);
    Ok(())
}
