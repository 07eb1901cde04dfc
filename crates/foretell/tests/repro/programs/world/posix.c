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
extern char **environ;
static pthread_mutex_t m; static pthread_t t; static int x; static volatile sig_atomic_t arrived; static sem_t s;
static void *count(void *_) { pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); return 0; }
static void *dies(void *_) { pthread_mutex_lock(&m); x = 1; return 0; }
static void *post(void *n) { x = 1; sem_post(n); return 0; }
static void *endless(void *_) { int o; pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &o); sem_post(&s); for (;;) usleep(1000); return 0; }
static void handler(int n) { arrived = 1; sem_post(&s); }
static void both(void) { pthread_create(&t, 0, count, 0); count(0); pthread_join(t, 0); assert(x == 2); }
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
  puts("ok"); return 0; }
