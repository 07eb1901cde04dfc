//! Programs that nobody recompiled, run by QEMU's user mode with our plugin in it (crate
//! `foretell-qemu`).
//!
//! Everything that must be there is looked for before anything runs, and what is not there is said with
//! the package of Debian that has it.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use foretell_guard::process;
use foretell_trace::format::Mapped;
use object::Object;

use crate::{Debugger, RecordError, RecordOptions, find};

/// The name of the plugin.
const PLUGIN: &str = "libforetell_qemu.so";

/// What an architecture needs.
struct Platform {
    /// In the name of its QEMU.
    name: &'static str,
    /// Where Debian has the libraries for it; empty where they are the machine's own.
    prefix: &'static str,
    /// Where Debian has the archives of its C library.
    archives: &'static str,
    /// Where gcc has its own, below which a folder has the number of its version.
    of_compiler: &'static str,
    /// The package with the C library, and the one with its archives.
    packages: [&'static str; 2],
    /// The processor may have no division: then it is a function of the compiler's archive, in every program.
    divides_by_library: bool,
}

const X86: Platform = Platform {
    name: "x86_64",
    prefix: "",
    archives: "/usr/lib/x86_64-linux-gnu",
    of_compiler: "/usr/lib/gcc/x86_64-linux-gnu",
    packages: ["libc6", "libc6-dev"],
    divides_by_library: false,
};
const ARM64: Platform = Platform {
    name: "aarch64",
    prefix: "/usr/aarch64-linux-gnu",
    archives: "/usr/aarch64-linux-gnu/lib",
    of_compiler: "/usr/lib/gcc-cross/aarch64-linux-gnu",
    packages: ["libc6-arm64-cross", "libc6-dev-arm64-cross"],
    divides_by_library: false,
};
const ARM: Platform = Platform {
    name: "arm",
    prefix: "/usr/arm-linux-gnueabihf",
    archives: "/usr/arm-linux-gnueabihf/lib",
    of_compiler: "/usr/lib/gcc-cross/arm-linux-gnueabihf",
    packages: ["libc6-armhf-cross", "libc6-dev-armhf-cross"],
    divides_by_library: true,
};

/// The QEMU for a program, and what it is given.
#[derive(Debug)]
pub struct Emulator {
    path: PathBuf,
    plugin: PathBuf,
    prefix: Option<&'static str>,
    /// Archives whose functions are not the program's, for a static one.
    archives: Vec<PathBuf>,
}

impl Emulator {
    /// The one for the program, if everything is there.
    pub fn new(program: &Path, debugger: Option<&Debugger>) -> Result<Self, RecordError> {
        let fail = |why: String| RecordError::Emulator(program.to_owned(), why);
        let (platform, loader) = platform(program).map_err(fail)?;
        let name = format!("qemu-{}", platform.name);
        let path = find::program(Path::new(&name)).ok_or_else(|| {
            fail(format!("`{name}` is not installed; install Debian's package qemu-user"))
        })?;
        if !has_plugins(&path) {
            return Err(fail(format!(
                "`{}` takes no plugins (a statically linked one does not); install Debian's package \
                 qemu-user of version 7.2",
                path.display()
            )));
        }
        let prefix = (!platform.prefix.is_empty()).then_some(platform.prefix);
        let mut archives = Vec::new();
        match loader {
            Some(loader) => {
                let found = [platform.prefix, ""]
                    .iter()
                    .any(|prefix| Path::new(&format!("{prefix}{loader}")).exists());
                if !found {
                    return Err(fail(format!(
                        "its loader `{loader}` is not there, nor below `{}`; install Debian's package \
                         {}",
                        platform.prefix, platform.packages[0]
                    )));
                }
                if platform.divides_by_library {
                    archives.extend(platform.found(|path| path.ends_with("libgcc.a")));
                }
            }
            None => archives = platform.archives().map_err(fail)?,
        }
        let plugin = find::library(PLUGIN).ok_or_else(|| {
            fail(format!(
                "{PLUGIN} is neither beside the foretell command nor in ../lib/foretell; install it there"
            ))
        })?;
        if !find::is_of_this_build(&plugin) {
            return Err(fail(format!(
                "`{}` is of another build than this foretell; install both together",
                plugin.display()
            )));
        }
        let gdb = debugger.map(|debugger| debugger.of(prefix.is_some()));
        if let Some(gdb) = gdb.filter(|gdb| find::program(gdb).is_none()) {
            let name = gdb.display();
            return Err(fail(format!(
                "there is no `{name}` to debug it with; install Debian's package {name}"
            )));
        }
        Ok(Self { path, plugin, prefix, archives })
    }

    /// The command that runs the program as the options say, with the ring in this file.
    pub fn command(&self, program: &Path, options: &RecordOptions, ring: i32) -> Command {
        let mut command = Command::new(&self.path);
        if let Some(prefix) = self.prefix {
            command.args(["-L", prefix]);
        }
        // Addresses and what the kernel makes up are the same each time, and the loader looks all
        // functions up before the program begins.
        command.args(["-seed", "1", "-E", "LD_BIND_NOW=1"]);
        let mut plugin = OsString::from("file=");
        plugin.push(escaped(&self.plugin));
        plugin.push(format!(",ring={ring},policy={}", options.policy));
        if let Some(points) = options.point_limit {
            plugin.push(format!(",points={points}"));
        }
        if options.path {
            plugin.push(",branches=1");
        }
        if options.terms {
            plugin.push(",terms=1");
        }
        if let Some(log) = &options.replay {
            plugin.push(",follow=");
            plugin.push(escaped(log));
        }
        if options.debugger.is_some() {
            // Only between blocks of code can QEMU stop: each is one instruction now.
            command.arg("-singlestep").arg("-g").arg(socket(options));
            plugin.push(",debugged=1");
        }
        for archive in &self.archives {
            plugin.push(",library=");
            plugin.push(escaped(archive));
        }
        command.arg("-plugin").arg(plugin);
        command.arg("-0").arg(&options.program).arg(program).args(&options.arguments);
        command
    }

    /// The debugger, if the options want one, beside the QEMU with this number.
    pub fn debugger(
        &self,
        program: &Path,
        options: &RecordOptions,
        process: u32,
    ) -> Option<Command> {
        let debugger = options.debugger.as_ref()?;
        Some(debugger.beside(program, self.prefix, &socket(options), process))
    }
}

/// Where QEMU listens for a debugger.
fn socket(options: &RecordOptions) -> PathBuf {
    options.output.with_extension("gdb")
}

impl Platform {
    /// Such files of the C library and the compiler.
    fn found(&self, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let library = Path::new(self.archives);
        let compiler = std::fs::read_dir(self.of_compiler).into_iter().flatten().flatten();
        let folders = compiler.map(|entry| entry.path()).chain([library.to_owned()]);
        let mut found: Vec<PathBuf> = folders
            .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
            .map(|entry| entry.path())
            .filter(|path| wanted(path))
            .collect();
        found.sort();
        found
    }

    /// The archives that a static program has its C library from.
    fn archives(&self) -> Result<Vec<PathBuf>, String> {
        let archives = self.found(is_of_c_library);
        match archives.iter().any(|path| path.ends_with("libc.a")) {
            true => Ok(archives),
            false => Err(format!(
                "it is statically linked, and what of it is the C library is told by the library's \
                 archive, which is not in `{}`; install Debian's package {}",
                self.archives, self.packages[1]
            )),
        }
    }
}

/// Whether the file is an archive of the C library or the compiler.
fn is_of_c_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let known = ["libc", "libm", "libmvec", "libpthread", "libgcc", "libgcc_eh", "libstdc++"];
    let stem = name.strip_suffix(".a");
    stem.is_some_and(|stem| known.contains(&stem) || stem.starts_with("libm-"))
}

/// What the program needs, and the loader that it names. The error says why it cannot be run.
fn platform(program: &Path) -> Result<(Platform, Option<String>), String> {
    let content = File::open(program).and_then(Mapped::of).map_err(|error| error.to_string())?;
    let no_program =
        "it is no executable for Linux in ELF format; give the program itself, not a script";
    let damaged =
        "it is damaged: what its header in ELF format says is not in it (a file that was cut off?)";
    let why = if content.starts_with(b"\x7fELF") { damaged } else { no_program };
    let file = object::File::parse(&*content).map_err(|_| why)?;
    if file.format() != object::BinaryFormat::Elf {
        return Err(no_program.into());
    }
    let platform = match file.architecture() {
        object::Architecture::X86_64 => X86,
        object::Architecture::Aarch64 => ARM64,
        object::Architecture::Arm if file.is_little_endian() => ARM,
        other => {
            return Err(format!(
                "it is for another architecture ({other:?}); known are x86-64, AArch64 and 32-bit ARM"
            ));
        }
    };
    if !matches!(file.kind(), object::ObjectKind::Executable | object::ObjectKind::Dynamic) {
        return Err("it is no executable but what a linker makes one of; link it".into());
    }
    // Linux would not execute it; QEMU loads it all the same, and then its loader fails.
    let mode = std::fs::metadata(program).map(|about| about.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o111 == 0) {
        return Err("it is not executable; make it so (chmod +x)".into());
    }
    let loader = loader(&content);
    match &loader {
        Some(loader) if !loader.contains("/ld-linux") => Err(format!(
            "its loader `{loader}` is not that of glibc, whose functions are the ones that are recognised"
        )),
        _ => Ok((platform, loader)),
    }
}

/// The loader that an executable names; none if it is statically linked.
fn loader(content: &[u8]) -> Option<String> {
    use object::elf;
    match object::FileKind::parse(content).ok()? {
        object::FileKind::Elf64 => loader_in::<elf::FileHeader64<object::Endianness>>(content),
        object::FileKind::Elf32 => loader_in::<elf::FileHeader32<object::Endianness>>(content),
        _ => None,
    }
}

fn loader_in<H>(content: &[u8]) -> Option<String>
where
    H: object::read::elf::FileHeader<Endian = object::Endianness>,
{
    use object::read::elf::ProgramHeader;
    let header = H::parse(content).ok()?;
    let endian = header.endian().ok()?;
    let headers = header.program_headers(endian, content).ok()?;
    let name =
        headers.iter().find_map(|header| header.interpreter(endian, content).ok().flatten())?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Whether the QEMU takes plugins: it says so in its help.
fn has_plugins(path: &Path) -> bool {
    const MOST: usize = 1 << 20;
    let help = process::run(Command::new(path).arg("-help"), Some(Duration::from_secs(10)), MOST);
    help.is_ok_and(|help| String::from_utf8_lossy(&help.output).contains("-plugin"))
}

/// A path as QEMU's options want it.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}
