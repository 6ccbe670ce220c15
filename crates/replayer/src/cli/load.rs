//! The command `load`.

use std::process::ExitCode;

use schemas::verdict::all_hold;

use super::output::{print, progress_bar};
use super::target::Target;
use crate::any_store::{self, AnyStore};
use crate::source::Source;
use crate::stores::StoreError;

/// Loads the trace set's data set into the store.
pub fn load(target: &Target) -> anyhow::Result<ExitCode> {
    let source = target.source()?;
    let store = any_store::open(&target.store)?;
    let conditions = load_into(store.as_ref(), &source)?;
    let rows = source.rows_total();
    if target.json {
        let id = &source.manifest.workload_id;
        print(&serde_json::json!({ "workload_id": id, "rows": rows, "conditions": conditions }))?;
    } else {
        print(&format_args!("loaded {rows} rows of workload {}", source.manifest.workload_id))?;
        if conditions > 0 {
            print(&all_hold(conditions))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Loads a store, with a progress bar. Returns how many conditions of the data were checked and hold.
pub fn load_into(store: &dyn AnyStore, source: &Source) -> Result<u64, StoreError> {
    let bar = progress_bar("loading [{bar:30}] {pos} of {len} rows");
    bar.set_length(source.rows_total());
    let result = store.load(source, &|rows, _| bar.set_position(rows));
    bar.finish_and_clear();
    result
}
