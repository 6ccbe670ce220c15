//! The help texts, as users see them.

use std::process::Command;

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_replayer"))
        .args(arguments)
        .env("COLUMNS", "100")
        .output()
        .expect("the program starts");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn help_of_replayer() {
    insta::assert_snapshot!(help(&["--help"]));
}

#[test]
fn help_of_run() {
    insta::assert_snapshot!(help(&["run", "--help"]));
}

#[test]
fn serving_beyond_loopback_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_replayer"))
        .args(["serve", "--listen", "0.0.0.0:0"])
        .output()
        .expect("it starts");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(error.contains("0.0.0.0:0") && error.contains("loopback"), "{error}");
}
