//! What the wrappers do when the scheduler is off: they call libc.

use libc::{
    c_int, c_uint, c_void, clockid_t, pthread_attr_t, pthread_barrier_t, pthread_cond_t,
    pthread_mutex_t, pthread_rwlock_t, pthread_t, sem_t, size_t, ssize_t, time_t, timespec,
    timeval,
};

use crate::real::real;

macro_rules! pass {
    ($($name:ident = $real:ident $(@ $version:literal)? ($($argument:ident : $type:ty),*) -> $result:ty;)*) => {$(
        #[inline(always)]
        #[allow(missing_docs)]
        pub unsafe fn $name($($argument: $type),*) -> $result {
            real!($real $(@ $version)? ($($argument: $type),*) -> $result)
        }
    )*};
}
type Begin = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type C11Begin = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;
type Routine = unsafe extern "C-unwind" fn();
pass! {
    mutex_lock = pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int;
    mutex_trylock = pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int;
    mutex_unlock = pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int;
    mutex_timedlock = pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int;
    mutex_clocklock = pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec) -> c_int;
    spin_lock = pthread_spin_lock(lock: *mut c_int) -> c_int;
    spin_trylock = pthread_spin_trylock(lock: *mut c_int) -> c_int;
    spin_unlock = pthread_spin_unlock(lock: *mut c_int) -> c_int;
    cond_wait = pthread_cond_wait @ c"GLIBC_2.3.2" (condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int;
    cond_timedwait = pthread_cond_timedwait @ c"GLIBC_2.3.2" (condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int;
    cond_clockwait = pthread_cond_clockwait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec) -> c_int;
    cond_signal = pthread_cond_signal @ c"GLIBC_2.3.2" (condition: *mut pthread_cond_t) -> c_int;
    cond_broadcast = pthread_cond_broadcast @ c"GLIBC_2.3.2" (condition: *mut pthread_cond_t) -> c_int;
    sem_wait = sem_wait(semaphore: *mut sem_t) -> c_int;
    sem_timedwait = sem_timedwait(semaphore: *mut sem_t, until: *const timespec) -> c_int;
    sem_clockwait = sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, until: *const timespec) -> c_int;
    sem_trywait = sem_trywait(semaphore: *mut sem_t) -> c_int;
    sem_post = sem_post(semaphore: *mut sem_t) -> c_int;
    rwlock_rdlock = pthread_rwlock_rdlock(rwlock: *mut pthread_rwlock_t) -> c_int;
    rwlock_wrlock = pthread_rwlock_wrlock(rwlock: *mut pthread_rwlock_t) -> c_int;
    rwlock_tryrdlock = pthread_rwlock_tryrdlock(rwlock: *mut pthread_rwlock_t) -> c_int;
    rwlock_trywrlock = pthread_rwlock_trywrlock(rwlock: *mut pthread_rwlock_t) -> c_int;
    rwlock_timedrdlock = pthread_rwlock_timedrdlock(rwlock: *mut pthread_rwlock_t, until: *const timespec) -> c_int;
    rwlock_timedwrlock = pthread_rwlock_timedwrlock(rwlock: *mut pthread_rwlock_t, until: *const timespec) -> c_int;
    rwlock_clockrdlock = pthread_rwlock_clockrdlock(rwlock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec) -> c_int;
    rwlock_clockwrlock = pthread_rwlock_clockwrlock(rwlock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec) -> c_int;
    rwlock_unlock = pthread_rwlock_unlock(rwlock: *mut pthread_rwlock_t) -> c_int;
    barrier_wait = pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int;
    once = pthread_once(control: *mut c_int, routine: Routine) -> c_int;
    thread_create = pthread_create(handle: *mut pthread_t, attributes: *const pthread_attr_t, routine: Begin, argument: *mut c_void) -> c_int;
    thread_join = pthread_join(handle: pthread_t, result: *mut *mut c_void) -> c_int;
    c11_create = thrd_create(handle: *mut pthread_t, routine: C11Begin, argument: *mut c_void) -> c_int;
    clock_gettime = clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int;
    gettimeofday = gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int;
    time = time(result: *mut time_t) -> time_t;
    read = read(file: c_int, buffer: *mut c_void, count: size_t) -> ssize_t;
    getrandom = getrandom(buffer: *mut c_void, count: size_t, flags: c_uint) -> ssize_t;
    getpid = getpid() -> libc::pid_t;
}
