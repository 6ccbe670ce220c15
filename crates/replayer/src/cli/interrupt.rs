//! Ctrl-C while an experiment runs.

use std::sync::atomic::Ordering;

use schemas::program;
use schemas::terminal::hangup_is_ignored;

use crate::experiment::Control;

/// The first Ctrl-C ends the experiment and waits for the operations in flight. The second gives
/// them up. The third ends the process at once.
pub fn end_on_ctrl_c(control: &Control) {
    let (stop, abandon) = (control.stop.clone(), control.abandon.clone());
    let interrupted = move || {
        if !stop.swap(true, Ordering::Relaxed) {
            eprintln!("\ninterrupted: waiting for the operations in flight; press Ctrl-C again to abandon them");
        } else if !abandon.swap(true, Ordering::Relaxed) {
            eprintln!(
                "\ninterrupted again: abandoning the operations in flight (the outcome of writes is unknown, reads \
                 count as failed); closing the log"
            );
        } else {
            std::process::exit(program::INTERRUPTED.into());
        }
    };
    let outlives_terminal = hangup_is_ignored();
    // If another tool hosts this one, that tool has set a handler already, which stays.
    if ctrlc::set_handler(interrupted).is_ok() && outlives_terminal {
        // SAFETY: the call takes two numbers, and another thread may set a handler at any time.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
}
