//! Reading files that may be damaged.
//!
//! The libraries for Arrow and Parquet trust what a file says of itself, and panic where it
//! contradicts itself. Here that is an error like any other, and nothing of the panic
//! reaches the terminal.

use std::cell::Cell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether this thread reads such a file.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Reads a part of a file; a panic is an error.
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
        Err(_) => Err("it contradicts itself".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_thread_goes_on() {
        let panics = || guarded(|| -> Result<(), String> { panic!("not shown") });
        assert_eq!(panics().unwrap_err(), "it contradicts itself");
        assert_eq!(guarded(|| Err::<(), _>("wrong")).unwrap_err(), "wrong");
        assert_eq!(guarded(|| panics().or(Ok::<_, String>(()))), Ok(()));
        assert!(!IS_GUARDED.get());
    }
}
