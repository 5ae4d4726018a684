//! The whole program, by the clock that need not be waited for.

use std::io;
use std::process::{Command, ExitStatus};

/// How the program ended, and what it wrote.
fn demo(arguments: &[&str]) -> io::Result<(ExitStatus, String)> {
    let output = Command::new(env!("CARGO_BIN_EXE_demo")).args(arguments).output()?;
    Ok((output.status, String::from_utf8_lossy(&output.stdout).into_owned()))
}

#[test]
fn the_story_keeps_its_promises() -> io::Result<()> {
    let (status, text) = demo(&["--fast"])?;
    assert!(status.success(), "{text}");
    assert_eq!(text.matches('✓').count(), 6, "{text}");
    assert!(!text.contains('✗'), "{text}");
    assert!(text.contains("greedy got 120 of at most 120"), "{text}");
    assert!(text.contains("bursty got 110 of at most 110"), "{text}");
    Ok(())
}

#[test]
fn the_story_is_the_same_twice() -> io::Result<()> {
    assert_eq!(demo(&["--fast"])?, demo(&["--fast"])?);
    Ok(())
}

#[test]
fn what_is_not_for_a_terminal_is_plain_and_fits() -> io::Result<()> {
    let (_, text) = demo(&["--fast"])?;
    for line in text.lines() {
        assert!(!line.contains('\x1b'), "{line:?}");
        assert!(line.chars().count() <= 80, "{line:?}");
    }
    Ok(())
}

#[test]
fn other_arguments_are_refused() -> io::Result<()> {
    let (status, _) = demo(&["--slow"])?;
    assert_eq!(status.code(), Some(2));
    Ok(())
}
