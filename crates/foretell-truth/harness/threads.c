/* Threads, locks and waits in place of those of the C library. Their state is kept where the C library
 * keeps it, in the program's objects. */
#define _GNU_SOURCE
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HERE __builtin_return_address(0)
#define STEP(kind_, ...) step((struct op){.kind = kind_, .writes = 2, .at = HERE, __VA_ARGS__})
#define AT(object_) .object = (uintptr_t)(object_)

/* The first bytes of a mutex as glibc has them: lock, count, owner, users, kind. */
struct mutex {
  int locked;
  unsigned count;
  int owner; /* thread + 1 */
  unsigned users;
  int kind;
};
struct rwlock {
  int readers, writer; /* thread + 1 */
};
struct barrier {
  unsigned needed, arrived;
};

int possible(int thread, const struct op *op) {
  void *object = (void *)op->object;
  switch (op->kind) {
  case LOCK:
  case TIMED_LOCK: {
    struct mutex *mutex = object;
    int own = mutex->owner == thread + 1 && (mutex->kind & 3) != PTHREAD_MUTEX_NORMAL &&
              (mutex->kind & 3) != PTHREAD_MUTEX_ADAPTIVE_NP;
    return mutex->owner == 0 || own;
  }
  case READ_LOCK: return ((struct rwlock *)object)->writer == 0;
  case WRITE_LOCK: return ((struct rwlock *)object)->writer == 0 && ((struct rwlock *)object)->readers == 0;
  case SEMAPHORE_WAIT:
  case TIMED_SEMAPHORE_WAIT: return *(int *)object > 0;
  case ONCE: return *(int *)object != 1;
  default: return 1;
  }
}

static int acquire(struct mutex *mutex) {
  int me = self() + 1;
  if (mutex->owner == me) {
    if ((mutex->kind & 3) == PTHREAD_MUTEX_ERRORCHECK) return EDEADLK;
    mutex->count++;
    return 0;
  }
  mutex->owner = me;
  mutex->count = 1;
  return 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*entry)(void *), void *argument) {
  (void)attributes;
  *thread = (pthread_t)thread_new(entry, argument) + 1;
  return 0;
}
int pthread_join(pthread_t thread, void **result) {
  int number = (int)(thread - 1);
  STEP(JOIN, AT(number));
  thread_joined(number);
  if (result != NULL) *result = thread_result(number);
  return 0;
}
int pthread_detach(pthread_t thread) { return (void)thread, 0; }
void pthread_exit(void *result) { thread_end(result); }
pthread_t pthread_self(void) { return (pthread_t)self() + 1; }
int pthread_equal(pthread_t a, pthread_t b) { return a == b; }
int pthread_setname_np(pthread_t thread, const char *name) { return (void)thread, (void)name, 0; }

int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attributes) {
  int kind = PTHREAD_MUTEX_NORMAL;
  if (attributes != NULL) pthread_mutexattr_gettype(attributes, &kind);
  memset(m, 0, sizeof *m);
  ((struct mutex *)m)->kind = kind;
  return 0;
}
int pthread_mutex_destroy(pthread_mutex_t *m) { return (void)m, 0; }
int pthread_mutex_lock(pthread_mutex_t *m) {
  STEP(LOCK, AT(m));
  return acquire((struct mutex *)m);
}
int pthread_mutex_trylock(pthread_mutex_t *m) {
  struct mutex *mutex = (struct mutex *)m;
  STEP(CHANGE, AT(m));
  int own = mutex->owner == self() + 1 && (mutex->kind & 3) == PTHREAD_MUTEX_RECURSIVE;
  return mutex->owner == 0 || own ? acquire(mutex) : EBUSY;
}
int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until) {
  (void)until;
  return STEP(TIMED_LOCK, AT(m)) ? ETIMEDOUT : acquire((struct mutex *)m);
}
int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *until) {
  (void)until, (void)clock;
  return STEP(TIMED_LOCK, AT(m)) ? ETIMEDOUT : acquire((struct mutex *)m);
}
int pthread_mutex_unlock(pthread_mutex_t *m) {
  struct mutex *mutex = (struct mutex *)m;
  STEP(CHANGE, AT(m));
  if ((mutex->kind & 3) != PTHREAD_MUTEX_NORMAL && mutex->owner != self() + 1) return EPERM;
  if (--mutex->count == 0) mutex->owner = 0;
  return 0;
}

int pthread_spin_init(pthread_spinlock_t *s, int shared) { return (void)shared, *s = 0, 0; }
int pthread_spin_destroy(pthread_spinlock_t *s) { return (void)s, 0; }
int pthread_spin_lock(pthread_spinlock_t *s) { return STEP(ONCE, AT(s)), *s = 1, 0; }
int pthread_spin_trylock(pthread_spinlock_t *s) {
  STEP(CHANGE, AT(s));
  return *s ? EBUSY : (*s = 1, 0);
}
int pthread_spin_unlock(pthread_spinlock_t *s) { return STEP(CHANGE, AT(s)), *s = 0, 0; }

int pthread_rwlock_init(pthread_rwlock_t *l, const pthread_rwlockattr_t *attributes) {
  (void)attributes;
  memset(l, 0, sizeof *l);
  return 0;
}
int pthread_rwlock_destroy(pthread_rwlock_t *l) { return (void)l, 0; }
int pthread_rwlock_rdlock(pthread_rwlock_t *l) {
  STEP(READ_LOCK, AT(l));
  ((struct rwlock *)l)->readers++;
  return 0;
}
int pthread_rwlock_wrlock(pthread_rwlock_t *l) {
  STEP(WRITE_LOCK, AT(l));
  ((struct rwlock *)l)->writer = self() + 1;
  return 0;
}
int pthread_rwlock_tryrdlock(pthread_rwlock_t *l) {
  struct rwlock *lock = (struct rwlock *)l;
  STEP(CHANGE, AT(l));
  return lock->writer ? EBUSY : (lock->readers++, 0);
}
int pthread_rwlock_trywrlock(pthread_rwlock_t *l) {
  struct rwlock *lock = (struct rwlock *)l;
  STEP(CHANGE, AT(l));
  return lock->writer || lock->readers ? EBUSY : (lock->writer = self() + 1, 0);
}
int pthread_rwlock_unlock(pthread_rwlock_t *l) {
  struct rwlock *lock = (struct rwlock *)l;
  STEP(CHANGE, AT(l));
  if (lock->writer) lock->writer = 0;
  else lock->readers--;
  return 0;
}

int pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *attributes) {
  return (void)c, (void)attributes, 0;
}
int pthread_cond_destroy(pthread_cond_t *c) { return (void)c, 0; }
static int wait(pthread_cond_t *c, pthread_mutex_t *m, int timed) {
  struct mutex *mutex = (struct mutex *)m;
  STEP(CHANGE, AT(c), .other = (uintptr_t)m);
  mutex->owner = 0;
  int late = STEP(SLEEP, AT(c), .other = (uintptr_t)m, .timed = timed);
  if (late) STEP(LOCK, AT(m));
  acquire(mutex);
  return late ? ETIMEDOUT : 0;
}
int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m) { return wait(c, m, 0); }
int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until) {
  return (void)until, wait(c, m, 1);
}
int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock, const struct timespec *until) {
  return (void)until, (void)clock, wait(c, m, 1);
}
int pthread_cond_signal(pthread_cond_t *c) {
  int which = STEP(SIGNAL, AT(c));
  if (waiters((uintptr_t)c)) wake((uintptr_t)c, which);
  return 0;
}
int pthread_cond_broadcast(pthread_cond_t *c) {
  STEP(CHANGE, AT(c));
  wake((uintptr_t)c, -1);
  return 0;
}

int sem_init(sem_t *s, int shared, unsigned value) { return (void)shared, *(int *)s = (int)value, 0; }
int sem_destroy(sem_t *s) { return (void)s, 0; }
int sem_wait(sem_t *s) { return STEP(SEMAPHORE_WAIT, AT(s)), --*(int *)s, 0; }
int sem_trywait(sem_t *s) {
  STEP(CHANGE, AT(s));
  if (*(int *)s > 0) return --*(int *)s, 0;
  return errno = EAGAIN, -1;
}
int sem_timedwait(sem_t *s, const struct timespec *until) {
  (void)until;
  if (STEP(TIMED_SEMAPHORE_WAIT, AT(s))) return errno = ETIMEDOUT, -1;
  return --*(int *)s, 0;
}
int sem_post(sem_t *s) { return STEP(CHANGE, AT(s)), ++*(int *)s, 0; }
int sem_getvalue(sem_t *s, int *value) { return STEP(CHANGE, AT(s)), *value = *(int *)s, 0; }

int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attributes, unsigned needed) {
  (void)attributes;
  *(struct barrier *)b = (struct barrier){needed, 0};
  return 0;
}
int pthread_barrier_destroy(pthread_barrier_t *b) { return (void)b, 0; }
int pthread_barrier_wait(pthread_barrier_t *b) {
  struct barrier *barrier = (struct barrier *)b;
  STEP(CHANGE, AT(b));
  if (++barrier->arrived == barrier->needed) {
    barrier->arrived = 0;
    wake_barrier((uintptr_t)b);
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  STEP(ARRIVED, AT(b));
  return 0;
}

int pthread_once(pthread_once_t *once, void (*routine)(void)) {
  STEP(ONCE, AT(once));
  if (*once == 0) {
    *once = 1;
    routine();
    STEP(CHANGE, AT(once));
    *once = 2;
  }
  return 0;
}
/* The initialisation of a static variable in C++: the first byte says that it is done. */
int __cxa_guard_acquire(char *guard) {
  STEP(ONCE, AT(guard + 4));
  if (guard[0]) return 0;
  *(int *)(guard + 4) = 1;
  return 1;
}
void __cxa_guard_release(char *guard) {
  STEP(CHANGE, AT(guard + 4), .other = (uintptr_t)guard);
  *(int *)(guard + 4) = 0;
  guard[0] = 1;
}

static unsigned keys;
int pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
  return (void)destructor, *key = keys++, 0;
}
int pthread_key_delete(pthread_key_t key) { return (void)key, 0; }
void *pthread_getspecific(pthread_key_t key) { return *thread_value(key); }
int pthread_setspecific(pthread_key_t key, const void *value) {
  return *thread_value(key) = (void *)value, 0;
}

int sched_yield(void) { return 0; }
int usleep(useconds_t time) { return (void)time, 0; }
unsigned sleep(unsigned time) { return (void)time, 0; }
int nanosleep(const struct timespec *time, struct timespec *rest) { return (void)time, (void)rest, 0; }
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest) {
  return (void)clock, (void)flags, (void)time, (void)rest, 0;
}
int clock_gettime(clockid_t clock, struct timespec *time) {
  (void)clock;
  *time = (struct timespec){1000000, 0};
  return 0;
}
time_t time(time_t *to) {
  if (to) *to = 1000000;
  return 1000000;
}

void __assert_fail(const char *what, const char *file, unsigned line, const char *function) {
  (void)what, (void)file, (void)function;
  found("assertion", line);
}
void abort(void) { found("abort", 0); }
