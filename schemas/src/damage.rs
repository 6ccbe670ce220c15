//! Reads files that may be damaged.
//!
//! The Arrow and Parquet libraries trust what a file says about itself, and panic where the file
//! contradicts itself. This module turns such a panic into an error, and keeps its message off
//! the terminal.

use std::cell::Cell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// True while this thread runs [`guarded`].
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Reads a part of a file; turns a panic into an error.
pub(crate) fn guarded<X, E: Display>(read: impl FnOnce() -> Result<X, E>) -> Result<X, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                before(panic);
            }
        }));
    });
    let outer = IS_GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    IS_GUARDED.set(outer);
    match result {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(_) => Err("its contents are inconsistent".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_thread_goes_on() {
        let panics = || guarded(|| -> Result<(), String> { panic!("not shown") });
        assert_eq!(panics().unwrap_err(), "its contents are inconsistent");
        assert_eq!(guarded(|| Err::<(), _>("wrong")).unwrap_err(), "wrong");
        assert_eq!(guarded(|| panics().or(Ok::<_, String>(()))), Ok(()));
        assert!(!IS_GUARDED.get());
    }
}
