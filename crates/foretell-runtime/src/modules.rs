//! The executable parts of the program and its libraries, for the recorder to find source lines.

use foretell_wire::record::DefineModule;
use libc::{c_int, c_void};

use crate::recorder::{Text, recorder};
use crate::turn::TurnCell;

/// An executable segment.
struct Segment {
    first: u64,
    end: u64,
    /// Compiled by the pass, which reports copies of memory itself.
    pass: bool,
    /// Of the C library, see [`LIBC`].
    libc: bool,
    /// Of a runtime library of OpenMP.
    openmp: bool,
}

/// How the names of the files begin that are the C library, with the loader and what it loads for
/// itself (name services, the unwinder).
const LIBC: [&str; 10] = [
    "libc.so",
    "ld-linux",
    "libm.so",
    "libpthread.so",
    "libdl.so",
    "librt.so",
    "libresolv.so",
    "libnss_",
    "libanl.so",
    "libgcc_s.so",
];

static SEGMENTS: TurnCell<Vec<Segment>> = TurnCell::new(Vec::new());

/// # Safety
/// Only for the thread that has the turn.
unsafe fn segments() -> &'static mut Vec<Segment> {
    // SAFETY: the caller's promise.
    unsafe { SEGMENTS.get() }
}

/// Tells the recorder of modules that it does not know yet.
///
/// # Safety
/// Only for the thread that has the turn.
pub unsafe fn announce() {
    // SAFETY: the callback is ours.
    unsafe { libc::dl_iterate_phdr(Some(visit), std::ptr::null_mut()) };
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    _data: *mut c_void,
) -> c_int {
    // SAFETY: libc's description of a loaded module.
    unsafe {
        let info = &*info;
        for index in 0..info.dlpi_phnum {
            let segment = &*info.dlpi_phdr.add(index.into());
            if segment.p_type != libc::PT_LOAD || segment.p_flags & libc::PF_X == 0 {
                continue;
            }
            let first = info.dlpi_addr + segment.p_vaddr;
            let end = first + segment.p_memsz;
            if segments().iter().any(|known| known.first == first) {
                continue;
            }
            let name = match info.dlpi_name.is_null() {
                true => &[],
                false => std::ffi::CStr::from_ptr(info.dlpi_name).to_bytes(),
            };
            let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
            let libc = LIBC.iter().any(|beginning| file.starts_with(beginning.as_bytes()));
            let openmp = OPENMP.iter().any(|name| file.starts_with(name));
            segments().push(Segment { first, end, pass: false, libc, openmp });
            let (load_address, file) = (info.dlpi_addr, Text::C(info.dlpi_name));
            recorder().record(0, 0, &DefineModule { load_address, first, end, file });
        }
    }
    0
}

/// The module that holds this address was compiled by the pass. Its data is near its code: the
/// segment that ends last before it.
///
/// # Safety
/// Only for the thread that has the turn.
pub unsafe fn mark_pass(address: u64) {
    // SAFETY: the caller's promise.
    let segments = unsafe { segments() };
    let below = segments.iter_mut().filter(|segment| segment.first <= address);
    if let Some(segment) = below.max_by_key(|segment| segment.first) {
        segment.pass = true;
    }
}

/// The segment with the code at the address.
fn segment_of(place: u64) -> Option<&'static Segment> {
    // SAFETY: callers are threads of ours, which have the turn while they run.
    let segments = unsafe { segments() };
    segments.iter().find(|segment| segment.first <= place && place < segment.end)
}

/// Whether code at the address reports copies of memory itself.
pub fn reports_copies(place: u64) -> bool {
    segment_of(place).is_some_and(|segment| segment.pass)
}

/// Whether the address lies in code of the program that was compiled by the pass.
pub fn is_program_code(place: u64) -> bool {
    segment_of(place).is_some_and(|segment| segment.pass)
}

/// The runtime libraries of OpenMP.
const OPENMP: [&[u8]; 3] = [b"libomp.so", b"libiomp5.so", b"libgomp.so"];

/// Whether code at the address is of a runtime library of OpenMP.
pub fn is_openmp(place: u64) -> bool {
    segment_of(place).is_some_and(|segment| segment.openmp)
}

/// Whether code at the address is the C library's own.
pub fn is_libc(place: u64) -> bool {
    segment_of(place).is_some_and(|segment| segment.libc)
}
