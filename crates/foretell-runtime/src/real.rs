//! The functions behind the wrappers: libc's, or whatever the program would have called.

use std::ffi::CStr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use libc::{c_char, c_void};

/// A function that is looked up at first use.
pub struct Real {
    pointer: AtomicPtr<c_void>,
    name: &'static CStr,
    version: Option<&'static CStr>,
}

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

impl Real {
    /// The next function of this name.
    pub const fn new(name: &'static CStr) -> Self {
        Self { pointer: AtomicPtr::new(std::ptr::null_mut()), name, version: None }
    }

    /// The next function of this name and version: where libc keeps an older one of the same name,
    /// a plain look-up may give that.
    pub const fn versioned(name: &'static CStr, version: &'static CStr) -> Self {
        Self { pointer: AtomicPtr::new(std::ptr::null_mut()), name, version: Some(version) }
    }

    /// Its address; ends the program when there is none, as the program called it.
    #[inline(always)]
    pub fn address(&self) -> *mut c_void {
        let pointer = self.pointer.load(Relaxed);
        if pointer.is_null() { self.look_up() } else { pointer }
    }

    /// Null when there is none.
    fn find(&self) -> *mut c_void {
        // SAFETY: names end in NUL.
        unsafe {
            match self.version {
                None => libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()),
                Some(version) => dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), version.as_ptr()),
            }
        }
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        let pointer = self.find();
        if pointer.is_null() {
            crate::sys::write(2, b"foretell: libc lacks ");
            crate::sys::write(2, self.name.to_bytes());
            crate::sys::write(2, b"\n");
            crate::sys::exit(foretell_wire::STOPPED_STATUS);
        }
        self.pointer.store(pointer, Relaxed);
        pointer
    }
}

/// Looks up every function now, so that copies of this process need not. One that libc lacks is nobody's
/// concern before it is called.
pub fn look_up_all() {
    unsafe extern "C" {
        #[link_name = "__start_foretell_real"]
        static FIRST: u8;
        #[link_name = "__stop_foretell_real"]
        static END: u8;
    }
    let (mut real, end) = ((&raw const FIRST).cast::<Real>(), (&raw const END).cast::<Real>());
    while real < end {
        // SAFETY: between the two, which the linker defines, lie the functions of `real!` and nothing else.
        let one = unsafe { &*real };
        if one.pointer.load(Relaxed).is_null() {
            one.pointer.store(one.find(), Relaxed);
        }
        // SAFETY: as above.
        real = unsafe { real.add(1) };
    }
}

/// Calls the function behind a wrapper: `real!(sem_wait(semaphore: *mut sem_t) -> c_int)`.
macro_rules! real {
    ($name:ident($($argument:ident : $type:ty),*) -> $result:ty) => {
        real!(@call $crate::real::Real::new, $name, (), ($($argument: $type),*), $result)
    };
    ($name:ident @ $version:literal ($($argument:ident : $type:ty),*) -> $result:ty) => {
        real!(@call $crate::real::Real::versioned, $name, ($version),
            ($($argument: $type),*), $result)
    };
    (@call $make:path, $name:ident, ($($version:literal)?), ($($argument:ident : $type:ty),*),
        $result:ty) => {{
        #[unsafe(link_section = "foretell_real")]
        static REAL: $crate::real::Real = {
            const NAME: &std::ffi::CStr =
                match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                };
            $make(NAME $(, $version)?)
        };
        type Function = unsafe extern "C-unwind" fn($($type),*) -> $result;
        // SAFETY: the function has the type of the wrapper that stands in front of it.
        #[allow(clippy::macro_metavars_in_unsafe)]
        unsafe { std::mem::transmute::<*mut libc::c_void, Function>(REAL.address())($($argument),*) }
    }};
}
pub(crate) use real;

/// Defines wrappers that libc's callers meet instead of libc's function. The program counter of the
/// call is kept in [`crate::local::caller`]. `fn pthread_mutex_lock as lock(...)` gives the body a
/// name of its own, for callers inside the runtime; `as lock or other, (...)` sends threads that the
/// scheduler does not know straight to `other`, which takes and gives the same.
macro_rules! interpose {
    () => {};
    (fn $name:ident($($argument:ident : $type:ty),* $(,)?) -> $result:ty $body:block
        $($rest:tt)*) => {
        interpose!(@naked $name, ($($argument: $type),*), $result, {
            unsafe extern "C-unwind" fn body($($argument: $type),*) -> $result {
                #[allow(unused_unsafe)]
                // SAFETY: called as libc's function would be.
                unsafe { $body }
            }
        }, body);
        interpose!($($rest)*);
    };
    (fn $name:ident as $inner:ident($($argument:ident : $type:ty),* $(,)?) -> $result:ty
        $body:block $($rest:tt)*) => {
        #[allow(missing_docs, clippy::missing_safety_doc)] // as libc's function
        pub unsafe extern "C-unwind" fn $inner($($argument: $type),*) -> $result {
            #[allow(unused_unsafe)]
            // SAFETY: called as libc's function would be.
            unsafe { $body }
        }
        interpose!(@naked $name, ($($argument: $type),*), $result, {}, $inner);
        interpose!($($rest)*);
    };
    (fn $name:ident as $inner:ident or $free:path, ($($argument:ident : $type:ty),* $(,)?)
        -> $result:ty $body:block $($rest:tt)*) => {
        #[allow(missing_docs, clippy::missing_safety_doc)] // as libc's function
        pub unsafe extern "C-unwind" fn $inner($($argument: $type),*) -> $result {
            #[allow(unused_unsafe)]
            // SAFETY: called as libc's function would be.
            unsafe { $body }
        }
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[allow(missing_docs, clippy::missing_safety_doc)] // as libc's function
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $result {
            core::arch::naked_asm!(
                "mov r10, qword ptr [rip + foretell_current@gottpoff]",
                "cmp qword ptr fs:[r10], 0",
                "je 2f",
                "mov r11, qword ptr [rsp]",
                "mov r10, qword ptr [rip + foretell_caller@gottpoff]",
                "mov qword ptr fs:[r10], r11",
                "jmp {inner}",
                "2:",
                "jmp {free}",
                inner = sym $inner,
                free = sym $free,
            )
        }
        interpose!($($rest)*);
    };
    (@naked $name:ident, ($($argument:ident : $type:ty),*), $result:ty, { $($item:item)* },
        $inner:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[allow(missing_docs, clippy::missing_safety_doc)] // as libc's function
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $result {
            $($item)*
            core::arch::naked_asm!(
                "mov r11, qword ptr [rsp]",
                "mov r10, qword ptr [rip + foretell_caller@gottpoff]",
                "mov qword ptr fs:[r10], r11",
                "jmp {inner}",
                inner = sym $inner,
            )
        }
    };
}
pub(crate) use interpose;
