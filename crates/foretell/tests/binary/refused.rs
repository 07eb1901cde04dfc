//! What cannot be run is refused before anything runs, with what to do.

use std::path::Path;
use std::process::Command;

use crate::Workshop;

#[test]
fn what_is_not_there_is_said_before_anything_runs() {
    let workshop = Workshop::new();
    let script = workshop.source("script", "#!/bin/sh\necho ran\n");
    let words = ["record", "--binary"];
    let refused = |program: &Path, environment: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
        command.current_dir(workshop.0.path()).args(words).arg("--").arg(program);
        if let Some(path) = environment {
            command.env("PATH", path);
        }
        let output = command.output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "nothing ran: {output:?}");
        assert!(!workshop.0.path().join("run.ftrace").exists(), "no file is left");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = refused(&script, None);
    assert!(said.contains("no executable for Linux"), "{said}");
    // The machine of an ELF file is in its bytes 18 and 19: this is for RISC-V.
    let own = std::env::current_exe().expect("this test");
    let mut foreign = std::fs::read(&own).expect("readable");
    foreign[18] = 0xf3;
    let path = workshop.0.path().join("foreign");
    std::fs::write(&path, foreign).expect("written");
    let said = refused(&path, None);
    assert!(said.contains("another architecture") && said.contains("AArch64"), "{said}");
    let mut cut = std::fs::read(&own).expect("readable");
    cut.truncate(3000);
    std::fs::write(&path, &cut).expect("written");
    let said = refused(&path, None);
    assert!(said.contains("damaged"), "{said}");
    // Its type is in bytes 16 and 17: what a linker has yet to make an executable of.
    let mut object = std::fs::read(&own).expect("readable");
    object[16] = 1;
    std::fs::write(&path, object).expect("written");
    let said = refused(&path, None);
    assert!(said.contains("link it"), "{said}");
    std::fs::copy(&own, &path).expect("copied");
    let plain = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&path, plain).expect("not executable");
    let said = refused(&path, None);
    assert!(said.contains("chmod +x"), "{said}");
    let empty = workshop.0.path().join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    let said = refused(&own, Some(&empty));
    assert!(said.contains("qemu-user"), "the package is named: {said}");
    // One without plugins, as a statically linked QEMU is.
    let plain = empty.join("qemu-x86_64");
    std::fs::write(&plain, "#!/bin/sh\necho usage: qemu\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&plain, mode).expect("executable");
    let said = refused(&own, Some(&empty));
    assert!(said.contains("takes no plugins") && said.contains("7.2"), "{said}");
}
