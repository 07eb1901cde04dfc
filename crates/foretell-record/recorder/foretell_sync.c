/* The recorder for targets: what `foretell record --sync-only` does, for machines on which foretell does not
 * run. Preloaded into a program (LD_PRELOAD) or linked to it, it logs in which order threads took locks and
 * the like; `foretell test --binary --from LOG` goes on from the log, on any machine.
 *
 * Every thread has a log of its own; every object counts its operations. The file is that of
 * foretell-wire's `sync_log`, version 1: FT-SYNC\1, then for each thread the length of its creation path,
 * the path, the number of its entries, and the entries, all in words of 64 bits, little endian. It is
 * written when the program calls exit or returns from main, to FORETELL_SYNC_LOG (run.sync when absent).
 *
 * Not logged: inputs, C11's mtx_ and cnd_, and what is made with 64-bit times on 32-bit machines. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in `sync_log::Kind`. */
enum kind {
  LOCK = 1, LOCK_FAILED, WAIT, SEMAPHORE_WAIT, SEMAPHORE_FAILED, SEMAPHORE_POST,
  READER_WRITER, READER_WRITER_FAILED, BARRIER, ONCE
};

struct log {
  struct log *next;
  uint64_t *entries;
  size_t count, room;
  uint32_t *path;
  uint32_t depth, children;
};

static _Atomic(struct log *) logs;
static __thread struct log *mine;

static void fail(const char *why) {
  fprintf(stderr, "foretell: the log of synchronisation cannot be kept: %s\n", why);
  abort();
}

static void *allocate(void *old, size_t size) {
  void *memory = realloc(old, size);
  if (!memory) fail("no memory");
  return memory;
}

/* The log of a new thread, child number `child` of `parent`; of the main thread without one. */
static struct log *new_log(const struct log *parent, uint32_t child) {
  struct log *log = allocate(NULL, sizeof *log);
  memset(log, 0, sizeof *log);
  if (parent) {
    log->depth = parent->depth + 1;
    log->path = allocate(NULL, log->depth * sizeof *log->path);
    if (parent->depth) memcpy(log->path, parent->path, parent->depth * sizeof *log->path);
    log->path[parent->depth] = child;
  }
  log->next = logs;
  while (!__atomic_compare_exchange_n((struct log **)&logs, &log->next, log, 0, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {}
  return log;
}

static void put(enum kind kind, uint32_t number) {
  struct log *log = mine;
  if (!log) return; /* a thread that was not made by pthread_create */
  if (log->count == log->room) {
    log->room = log->room ? 2 * log->room : 1024;
    log->entries = allocate(log->entries, log->room * sizeof *log->entries);
  }
  log->entries[log->count++] = (uint64_t)kind << 56 | number;
}

/* How many operations the object at an address has had. */
enum { OBJECTS = 1 << 16 };
static struct { uintptr_t address; uint32_t count; } objects[OBJECTS];

static uint32_t *count_of(const void *object) {
  uintptr_t address = (uintptr_t)object;
  for (size_t step = 0; step < OBJECTS; step++) {
    size_t at = (size_t)((address >> 2) * 2654435761u + step) % OBJECTS;
    uintptr_t there = __atomic_load_n(&objects[at].address, __ATOMIC_ACQUIRE);
    if (there == 0 && !__atomic_compare_exchange_n(&objects[at].address, &there, address, 0,
                                                   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
        && there != address) continue;
    if (there == 0 || there == address) return &objects[at].count;
  }
  fail("more than 65536 objects");
  return NULL;
}

static uint32_t place_of(const void *object) {
  return __atomic_fetch_add(count_of(object), 1, __ATOMIC_SEQ_CST);
}

/* Another object begins at the address. */
static void renew(const void *object) { __atomic_store_n(count_of(object), 0, __ATOMIC_SEQ_CST); }

static void *real(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (!found) fail(name);
  return found;
}

/* The function of this name that would have been called without us. */
#define REAL(result, name, ...)                                        \
  static result (*real_##name)(__VA_ARGS__);                           \
  if (!real_##name) real_##name = (result (*)(__VA_ARGS__))real(#name)

static int locked(pthread_mutex_t *mutex, int result) {
  if (result == 0) put(LOCK, place_of(mutex));
  else put(LOCK_FAILED, (uint32_t)result);
  return result;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  REAL(int, pthread_mutex_lock, pthread_mutex_t *);
  return locked(mutex, real_pthread_mutex_lock(mutex));
}

int pthread_mutex_trylock(pthread_mutex_t *mutex) {
  REAL(int, pthread_mutex_trylock, pthread_mutex_t *);
  return locked(mutex, real_pthread_mutex_trylock(mutex));
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until) {
  REAL(int, pthread_mutex_timedlock, pthread_mutex_t *, const struct timespec *);
  return locked(mutex, real_pthread_mutex_timedlock(mutex, until));
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes) {
  REAL(int, pthread_mutex_init, pthread_mutex_t *, const pthread_mutexattr_t *);
  renew(mutex);
  return real_pthread_mutex_init(mutex, attributes);
}

int pthread_mutex_destroy(pthread_mutex_t *mutex) {
  REAL(int, pthread_mutex_destroy, pthread_mutex_t *);
  int result = real_pthread_mutex_destroy(mutex);
  if (result == 0) renew(mutex);
  return result;
}

static int waited(pthread_mutex_t *mutex, int result) {
  put(WAIT, result == ETIMEDOUT);
  put(LOCK, place_of(mutex));
  return result;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
  REAL(int, pthread_cond_wait, pthread_cond_t *, pthread_mutex_t *);
  return waited(mutex, real_pthread_cond_wait(condition, mutex));
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until) {
  REAL(int, pthread_cond_timedwait, pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  return waited(mutex, real_pthread_cond_timedwait(condition, mutex, until));
}

static int taken(sem_t *semaphore, int result) {
  int error = errno;
  if (result == 0) put(SEMAPHORE_WAIT, place_of(semaphore));
  else put(SEMAPHORE_FAILED, (uint32_t)error);
  errno = error;
  return result;
}

int sem_init(sem_t *semaphore, int shared, unsigned value) {
  REAL(int, sem_init, sem_t *, int, unsigned);
  renew(semaphore);
  return real_sem_init(semaphore, shared, value);
}

int sem_wait(sem_t *semaphore) {
  REAL(int, sem_wait, sem_t *);
  return taken(semaphore, real_sem_wait(semaphore));
}

int sem_trywait(sem_t *semaphore) {
  REAL(int, sem_trywait, sem_t *);
  return taken(semaphore, real_sem_trywait(semaphore));
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until) {
  REAL(int, sem_timedwait, sem_t *, const struct timespec *);
  return taken(semaphore, real_sem_timedwait(semaphore, until));
}

int sem_post(sem_t *semaphore) {
  REAL(int, sem_post, sem_t *);
  put(SEMAPHORE_POST, place_of(semaphore)); /* before anybody can take it */
  return real_sem_post(semaphore);
}

static int shared(pthread_rwlock_t *lock, int result) {
  if (result == 0) put(READER_WRITER, place_of(lock));
  else put(READER_WRITER_FAILED, (uint32_t)result);
  return result;
}

int pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes) {
  REAL(int, pthread_rwlock_init, pthread_rwlock_t *, const pthread_rwlockattr_t *);
  renew(lock);
  return real_pthread_rwlock_init(lock, attributes);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
  REAL(int, pthread_rwlock_rdlock, pthread_rwlock_t *);
  return shared(lock, real_pthread_rwlock_rdlock(lock));
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
  REAL(int, pthread_rwlock_wrlock, pthread_rwlock_t *);
  return shared(lock, real_pthread_rwlock_wrlock(lock));
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock) {
  REAL(int, pthread_rwlock_tryrdlock, pthread_rwlock_t *);
  return shared(lock, real_pthread_rwlock_tryrdlock(lock));
}

int pthread_rwlock_trywrlock(pthread_rwlock_t *lock) {
  REAL(int, pthread_rwlock_trywrlock, pthread_rwlock_t *);
  return shared(lock, real_pthread_rwlock_trywrlock(lock));
}

int pthread_spin_lock(pthread_spinlock_t *lock) {
  REAL(int, pthread_spin_lock, pthread_spinlock_t *);
  int result = real_pthread_spin_lock(lock);
  put(LOCK, place_of((const void *)lock));
  return result;
}

int pthread_barrier_wait(pthread_barrier_t *barrier) {
  REAL(int, pthread_barrier_wait, pthread_barrier_t *);
  int result = real_pthread_barrier_wait(barrier);
  put(BARRIER, result == PTHREAD_BARRIER_SERIAL_THREAD);
  return result;
}

static __thread void (*once_routine)(void);
static __thread int once_ran;

static void run_once(void) {
  void (*routine)(void) = once_routine;
  routine();
  once_ran = 1;
}

int pthread_once(pthread_once_t *control, void (*routine)(void)) {
  REAL(int, pthread_once, pthread_once_t *, void (*)(void));
  void (*before)(void) = once_routine;
  once_routine = routine;
  once_ran = 0;
  int result = real_pthread_once(control, run_once);
  put(ONCE, (uint32_t)once_ran);
  once_routine = before;
  return result;
}

struct start { void *(*routine)(void *); void *argument; struct log *log; };

static void *begin(void *argument) {
  struct start start = *(struct start *)argument;
  free(argument);
  mine = start.log;
  return start.routine(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *),
                   void *argument) {
  REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  struct start *start = allocate(NULL, sizeof *start);
  *start = (struct start){routine, argument, mine ? new_log(mine, mine->children) : NULL};
  int result = real_pthread_create(thread, attributes, begin, start);
  if (result == 0 && mine) mine->children++;
  if (result != 0) free(start);
  return result;
}

__attribute__((constructor)) static void start_logging(void) { mine = new_log(NULL, 0); }

static void put_word(FILE *file, uint64_t word) {
  for (int byte = 0; byte < 8; byte++) putc((int)(word >> 8 * byte & 0xff), file);
}

__attribute__((destructor)) static void write_log(void) {
  const char *name = getenv("FORETELL_SYNC_LOG");
  FILE *file = fopen(name ? name : "run.sync", "wb");
  if (!file) fail("the file cannot be written");
  fwrite("FT-SYNC\1", 1, 8, file);
  for (const struct log *log = logs; log; log = log->next) {
    put_word(file, log->depth);
    for (uint32_t part = 0; part < log->depth; part++) put_word(file, log->path[part]);
    put_word(file, log->count);
    for (size_t entry = 0; entry < log->count; entry++) put_word(file, log->entries[entry]);
  }
  if (fclose(file)) fail("the file cannot be written");
}
