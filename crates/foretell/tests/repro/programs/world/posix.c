// One small correct program for each row of docs/src/posix.md; the argument says which.
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>
#include <aio.h>
#include <mqueue.h>
#include <linux/futex.h>
#include <sys/syscall.h>
extern char **environ;
static pthread_mutex_t m; static pthread_t t; static int x; static volatile sig_atomic_t arrived; static sem_t s;
static void *count(void *_) { pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); return 0; }
static void *dies(void *_) { pthread_mutex_lock(&m); x = 1; return 0; }
static void *post(void *n) { x = 1; sem_post(n); return 0; }
static void *endless(void *_) { int o; pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &o); sem_post(&s); for (;;) usleep(1000); return 0; }
static void handler(int n) { arrived = 1; sem_post(&s); }
static void both(void) { pthread_create(&t, 0, count, 0); count(0); pthread_join(t, 0); assert(x == 2); }
static int word; static pthread_spinlock_t spin; static pthread_once_t once = PTHREAD_ONCE_INIT; static pthread_barrier_t bar; static pthread_rwlock_t rw; static pthread_cond_t cond;
static void *set_word(void *_) { x = 1; __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST); syscall(SYS_futex, &word, FUTEX_WAKE, 1, 0, 0, 0); return 0; }
static void *spins(void *_) { pthread_spin_lock(&spin); x++; pthread_spin_unlock(&spin); return 0; }
static void first(void) { x++; }
static void *initialises(void *_) { pthread_once(&once, first); assert(x == 1); return 0; }
static void *meets(void *_) { x = 1; pthread_barrier_wait(&bar); return 0; }
static void *writes(void *_) { pthread_rwlock_wrlock(&rw); x++; pthread_rwlock_unlock(&rw); return 0; }
static void *signals(void *_) { pthread_mutex_lock(&m); x = 1; pthread_cond_signal(&cond); pthread_mutex_unlock(&m); return 0; }
static void waits(void) { pthread_create(&t, 0, signals, 0); pthread_mutex_lock(&m); while (!x) pthread_cond_wait(&cond, &m); pthread_mutex_unlock(&m); pthread_join(t, 0); }
static void meet(void) { pthread_create(&t, 0, meets, 0); pthread_barrier_wait(&bar); assert(x == 1); pthread_join(t, 0); }
static void both_write(void) { pthread_create(&t, 0, writes, 0); writes(0); pthread_join(t, 0); pthread_rwlock_rdlock(&rw); assert(x == 2); pthread_rwlock_unlock(&rw); }
static mqd_t queue(void) { struct mq_attr a = {.mq_maxmsg = 2, .mq_msgsize = 8}; char n[32]; sprintf(n, "/ftposix%d", getpid()); mqd_t q = mq_open(n, O_CREAT | O_RDWR, 0600, &a); mq_unlink(n); return q; }
static pthread_barrier_t *foreign; static void *meets_foreign(void *_) { x = 1; pthread_barrier_wait(foreign); return 0; }
static void called(union sigval v) { sem_post(&s); }
static int lockable(void) { char n[] = "/tmp/ftposixXXXXXX"; int f = mkstemp(n); unlink(n); return f; }
static int is(char **v, const char *name) { return !strcmp(v[1], name); }
int main(int c, char **v) {
  pthread_mutexattr_t a; pthread_mutexattr_init(&a); sem_init(&s, 0, 0);
  if (is(v, "recursive")) { pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE); pthread_mutex_init(&m, &a); both(); }
  if (is(v, "inherit")) { pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT); pthread_mutex_init(&m, &a); both(); }
  if (is(v, "pshared")) { pthread_mutexattr_setpshared(&a, 1); pthread_mutex_init(&m, &a); both(); }
  if (is(v, "robust")) { pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST); pthread_mutex_init(&m, &a);
    pthread_create(&t, 0, dies, 0); pthread_join(t, 0); assert(pthread_mutex_lock(&m) == EOWNERDEAD); pthread_mutex_consistent(&m); pthread_mutex_unlock(&m); assert(x == 1); }
  if (is(v, "named")) { sem_unlink("/ftposix"); sem_t *n = sem_open("/ftposix", O_CREAT, 0600, 0); sem_unlink("/ftposix");
    pthread_create(&t, 0, post, n); sem_wait(n); assert(x == 1); pthread_join(t, 0); }
  if (is(v, "cancel")) { pthread_create(&t, 0, endless, 0); sem_wait(&s); pthread_cancel(t); pthread_join(t, 0); }
  if (is(v, "itimer")) { signal(SIGALRM, handler); struct itimerval i = {{0, 0}, {0, 50000}}; setitimer(ITIMER_REAL, &i, 0); while (sem_wait(&s)) {} assert(arrived); }
  if (is(v, "timer")) { signal(SIGUSR1, handler); struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1}; timer_t id; timer_create(CLOCK_MONOTONIC, &e, &id);
    struct itimerspec i = {{0, 0}, {0, 50000000}}; timer_settime(id, 0, &i, 0); while (sem_wait(&s)) {} assert(arrived); timer_delete(id); }
  if (is(v, "raise")) { signal(SIGUSR1, handler); raise(SIGUSR1); sem_wait(&s); assert(arrived); }
  if (is(v, "fork")) { if (!fork()) _exit(3); int r; wait(&r); assert(WEXITSTATUS(r) == 3); }
  if (is(v, "spawn")) { pid_t p; char *w[] = {"true", 0}; assert(!posix_spawnp(&p, "true", 0, 0, w, environ)); int r; waitpid(p, &r, 0); assert(r == 0); }
  if (is(v, "system")) assert(system("exit 3") >> 8 == 3);
  if (is(v, "popen")) { FILE *f = popen("echo hi", "r"); char b[8]; assert(fgets(b, 8, f) && !strcmp(b, "hi\n")); pclose(f); }
  if (is(v, "execl")) execl("/bin/echo", "echo", "a", "b", "c", "d", "e", "f", (char *)0);
  if (is(v, "execfails")) assert(execlp("/no/such/program", "x", (char *)0) == -1);
  if (is(v, "sleep")) { struct timespec d = {0, 1000000}; assert(nanosleep(&d, 0) == 0); assert(sleep(1) == 0); }
  if (is(v, "flock")) { char n[] = "/tmp/ftposixXXXXXX"; int f = mkstemp(n); assert(!flock(f, LOCK_EX)); flock(f, LOCK_UN); unlink(n); }
  if (is(v, "semop")) { int q = semget(IPC_PRIVATE, 1, 0600); struct sembuf up = {0, 1, 0}, down = {0, -1, 0}; assert(!semop(q, &up, 1)); assert(!semop(q, &down, 1)); semctl(q, 0, IPC_RMID); }
  if (is(v, "msg")) { int q = msgget(IPC_PRIVATE, 0600); struct { long k; char b[4]; } g = {1, "hi"}; assert(!msgsnd(q, &g, 4, 0)); assert(msgrcv(q, &g, 4, 0, 0) == 4); msgctl(q, IPC_RMID, 0); }
  if (is(v, "ofd")) { struct flock l = {.l_type = F_WRLCK}; int f = lockable(); assert(!fcntl(f, F_OFD_SETLKW, &l)); l.l_type = F_UNLCK; assert(!fcntl(f, F_OFD_SETLK, &l)); }
  if (is(v, "fcntl")) { struct flock l = {.l_type = F_WRLCK}; int f = lockable(); assert(!fcntl(f, F_SETLKW, &l)); l.l_type = F_UNLCK; assert(!fcntl(f, F_SETLK, &l)); }
  if (is(v, "lockf")) { int f = lockable(); assert(!lockf(f, F_LOCK, 0)); assert(!lockf(f, F_ULOCK, 0)); }
  if (is(v, "mq")) { mqd_t q = queue(); char b[8]; assert(!mq_send(q, "hi", 3, 0)); assert(mq_receive(q, b, 8, 0) == 3); mq_close(q); }
  if (is(v, "mqnotify")) { mqd_t q = queue(); struct sigevent e = {.sigev_notify = SIGEV_NONE}; assert(!mq_notify(q, &e)); mq_close(q); }
  if (is(v, "futex")) { pthread_create(&t, 0, set_word, 0); while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST)) syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0, 0, 0); assert(x == 1); pthread_join(t, 0); }
  if (is(v, "spin")) { pthread_spin_init(&spin, 0); pthread_create(&t, 0, spins, 0); spins(0); pthread_join(t, 0); assert(x == 2); }
  if (is(v, "once")) { pthread_create(&t, 0, initialises, 0); initialises(0); pthread_join(t, 0); }
  if (is(v, "condition")) { pthread_mutex_init(&m, 0); pthread_cond_init(&cond, 0); waits(); }
  if (is(v, "barrier")) { pthread_barrier_init(&bar, 0, 2); meet(); }
  if (is(v, "rwlock")) { pthread_rwlock_init(&rw, 0); both_write(); }
  if (is(v, "sharedrwlock")) { pthread_rwlockattr_t r; pthread_rwlockattr_init(&r); pthread_rwlockattr_setpshared(&r, 1); pthread_rwlock_init(&rw, &r); both_write(); }
  if (is(v, "sharedcondition")) { pthread_condattr_t r; pthread_condattr_init(&r); pthread_condattr_setpshared(&r, 1); pthread_mutex_init(&m, 0); pthread_cond_init(&cond, &r); waits(); }
  if (is(v, "sharedbarrier")) { pthread_barrierattr_t r; pthread_barrierattr_init(&r); pthread_barrierattr_setpshared(&r, 1); pthread_barrier_init(&bar, &r, 2); meet(); }
  if (is(v, "foreigncondition")) { struct { pthread_mutex_t m; pthread_cond_t c; } *o = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0); pthread_condattr_t r; pthread_condattr_init(&r); pthread_condattr_setpshared(&r, 1);
    pthread_mutexattr_setpshared(&a, 1); pthread_mutex_init(&o->m, &a); pthread_cond_init(&o->c, &r); struct timespec d = {1, 0}; pthread_mutex_lock(&o->m); pthread_cond_timedwait(&o->c, &o->m, &d); pthread_mutex_unlock(&o->m); }
  if (is(v, "foreignbarrier")) { pthread_barrier_t *o = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0); pthread_barrierattr_t r; pthread_barrierattr_init(&r); pthread_barrierattr_setpshared(&r, 1);
    pthread_barrier_init(o, &r, 2); foreign = o; pthread_create(&t, 0, meets_foreign, 0); pthread_barrier_wait(o); assert(x == 1); pthread_join(t, 0); }
  if (is(v, "aio")) { char b[8]; int f = open("/etc/passwd", O_RDONLY); struct aiocb r = {.aio_fildes = f, .aio_buf = b, .aio_nbytes = 8}; const struct aiocb *l[] = {&r}; aio_read(&r); while (aio_error(&r) == EINPROGRESS) aio_suspend(l, 1, 0); assert(aio_return(&r) == 8); }
  if (is(v, "notify")) { struct sigevent e = {.sigev_notify = SIGEV_THREAD}; e.sigev_notify_function = called; timer_t id; timer_create(CLOCK_MONOTONIC, &e, &id); struct itimerspec i = {{0, 0}, {0, 1000000}}; timer_settime(id, 0, &i, 0); while (sem_wait(&s)) {} timer_delete(id); }
  puts("ok"); return 0; }
