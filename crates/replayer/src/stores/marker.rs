//! The marker: what a store says about the state that it holds.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemas::program::quoted;
use schemas::run::FragmentPosition;

use super::error::StoreError;
use super::url::StoreUrl;
use crate::clock::unix_ns;
use crate::source::Source;

/// Why a state is unknown while an experiment runs, and after its replayer was killed.
pub const RUNNING: &str = "an experiment is running, or was killed";

/// How records that another tool has loaded are brought back to their initial values.
pub const LOAD_AGAIN: &str = "load the records again with the tool that loaded them, and remove Encore's marker (the \
                              table or collection encore_state, or the key encore:held or encore-held)";

/// The state that a store holds, as its marker says.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HeldState {
    /// The version of the store's tables; 0 where a store has none.
    #[serde(default)]
    pub layout: u32,
    /// The physical design that it was loaded with, by the URL's parameters; empty if a store has only one.
    #[serde(default)]
    pub design: BTreeMap<String, String>,
    /// The workload that it was loaded from.
    pub workload_id: String,
    /// How far each fragment has been replayed.
    pub positions: Vec<FragmentPosition>,
    /// Why the state is not what the positions say (an experiment is running or
    /// died, writes failed); none when it is.
    pub diverged: Option<String>,
    /// The process whose experiment is running: [`this_process`] of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Whether another tool has loaded the records. Encore neither loads nor removes them then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// The name of the closing read of the experiment that runs, or that has left this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing_read: Option<String>,
}

/// A name of this process that no other process has.
pub fn this_process() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| format!("{}-{}", std::process::id(), unix_ns()));
    &NAME
}

impl HeldState {
    /// The marker of a freshly loaded store.
    pub fn loaded(layout: u32, design: BTreeMap<String, String>, source: &Source) -> HeldState {
        let workload_id = source.manifest.workload_id.clone();
        HeldState {
            layout,
            design,
            workload_id,
            positions: vec![],
            diverged: None,
            user: None,
            adopted: false,
            closing_read: None,
        }
    }

    /// Whether sessions have run since the load.
    pub fn has_moved(&self) -> bool {
        self.positions.iter().any(|position| position.next_session > 0)
    }

    /// What a user has to do before an experiment can start at the beginning of the trace.
    pub(crate) fn remedy(&self, url: &StoreUrl, source: &Source) -> String {
        match self.adopted {
            true => LOAD_AGAIN.to_string(),
            false => format!("load it again with {}", load_command(url, source)),
        }
    }

    /// Refuses a store that was loaded with another layout or design. `wanted` is the URL's
    /// design, in the order in which messages name it.
    pub fn check(&self, url: &StoreUrl, layout: u32, wanted: &[(&str, &str)]) -> Result<(), StoreError> {
        let again = "load it again with `encore replay load`";
        if self.layout != layout {
            let message =
                format!("has tables of version {}, this replayer requires version {layout}; {again}", self.layout);
            return Err(StoreError::usage(url, message));
        }
        let held = |name: &str| self.design.get(name).map_or("", String::as_str);
        if self.design.len() == wanted.len() && wanted.iter().all(|(name, value)| held(name) == *value) {
            return Ok(());
        }
        let said = |design: &mut dyn Iterator<Item = (&str, &str)>| {
            design.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
        };
        let found = said(&mut wanted.iter().map(|(name, _)| (*name, held(name))));
        let wanted = said(&mut wanted.iter().copied());
        Err(StoreError::usage(
            url,
            format!("was loaded with {found}, the URL says {wanted}; {again}, or change the URL"),
        ))
    }
}

/// The command that loads a trace set into a store.
fn load_command(url: &StoreUrl, source: &Source) -> String {
    let (trace, url) = (source.folder.display().to_string(), url.redacted());
    format!("`encore replay load --trace {} --store {}`", quoted(&trace), quoted(&url))
}

/// Refuses a store that is not loaded, or with another workload.
pub(crate) fn check_workload(
    url: &StoreUrl,
    held: Option<HeldState>,
    source: &Source,
) -> Result<HeldState, StoreError> {
    let wanted = &source.manifest.workload_id;
    match held {
        None => {
            let load = load_command(url, source);
            Err(StoreError::state(url, format!("is not loaded; load it with {load}")))
        }
        Some(held) if &held.workload_id != wanted => Err(StoreError::state(
            url,
            format!(
                "contains workload {}, the trace set {} is of workload {wanted}; {}",
                held.workload_id,
                source.folder.display(),
                held.remedy(url, source)
            ),
        )),
        Some(held) => Ok(held),
    }
}
