//! A folder for each test, and the `foretell` binary in it.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// Nothing here takes so long; it only ends a hang.
pub const LONG: Duration = Duration::from_secs(240);

/// A folder that is removed at the end of the test.
pub struct Workshop(tempfile::TempDir);

impl Workshop {
    pub fn new() -> Self {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        Self(tempfile::Builder::new().prefix("safe-").tempdir_in(place).expect("a folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// A file that can be run.
    pub fn script(&self, name: &str, content: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.file(name, content);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        path
    }

    /// Temporary files of foretell go to a folder of the test.
    pub fn temporary(&self) -> PathBuf {
        let path = self.path().join("temporary");
        std::fs::create_dir_all(&path).expect("a folder");
        path
    }

    /// What is in the temporary folder.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let entries = self.temporary().read_dir().expect("a folder");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }

    pub fn foretell(&self, arguments: &[&str]) -> Command {
        let test = std::env::current_exe().expect("path of the test");
        let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env("FORETELL_LIB_DIR", test.parent().expect("a folder"))
            .env("TMPDIR", self.temporary())
            .env("HOME", self.path().join("home"))
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::null());
        // A test that is interrupted takes foretell with it. (Programs that foretell records end with
        // it only if they are asked to, `--on-recorder-death end`.) A shell that starts the tests in the
        // background has them ignore signals, which foretell would inherit.
        // SAFETY: plain system calls.
        unsafe {
            command.pre_exec(|| {
                for number in [libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
                    libc::signal(number, libc::SIG_DFL);
                }
                match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        command
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Output {
        finish(self.foretell(arguments))
    }

    /// Compiles a C program with `foretell cc`.
    #[track_caller]
    pub fn build(&self, name: &str, source: &str) -> String {
        let file = self.file(&format!("{name}.c"), source);
        let program = self.path().join(name).display().to_string();
        let file = file.display().to_string();
        let built = self.run(&["cc", "-O1", "-g", &file, "-o", &program, "-pthread"]);
        assert!(built.status.success(), "{}", text(&built.stderr));
        program
    }
}

/// Runs a command to its end, with its output.
#[track_caller]
pub fn finish(mut command: Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    let (stdout, stderr, status) = drain(child);
    Output { status, stdout, stderr }
}

#[track_caller]
fn drain(mut child: Child) -> (Vec<u8>, Vec<u8>, ExitStatus) {
    use std::io::Read;
    let read = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut stream) = stream {
                let _ = stream.read_to_end(&mut bytes);
            }
            bytes
        })
    };
    let stdout = read(child.stdout.take().map(|s| Box::new(s) as Box<dyn Read + Send>));
    let stderr = read(child.stderr.take().map(|s| Box::new(s) as Box<dyn Read + Send>));
    let status = end_of(&mut child);
    (stdout.join().expect("read"), stderr.join().expect("read"), status)
}

/// Waits for the end of a process, which must come.
#[track_caller]
pub fn end_of(child: &mut Child) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return status;
        }
        if begin.elapsed() > LONG {
            let _ = child.kill();
            let _ = child.wait();
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until something is so, which must come.
#[track_caller]
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < LONG, "waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn signal(process: u32, signal: i32) {
    // SAFETY: a plain system call, to a process of the test.
    unsafe { libc::kill(process as i32, signal) };
}

/// Whether a process is there and not a zombie.
pub fn is_running(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A lost update: predicted in the trace.
pub const BANK: &str = include_str!("../../../../examples/traces/bank.ft");

/// A lost update that `foretell test` confirms.
pub const TORN: &str = r#"
#include <assert.h>
#include <pthread.h>
static int balance = 100;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *deposit(void *amount) {
  pthread_mutex_lock(&lock);
  int seen = balance;
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock);
  balance = seen + (int)(long)amount;
  pthread_mutex_unlock(&lock);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, deposit, (void *)10);
  pthread_create(&b, 0, deposit, (void *)20);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(balance == 130);
  return 0;
}
"#;
