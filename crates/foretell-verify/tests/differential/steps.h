/* The macros of random programs. For the verifier they are POSIX threads; for the truth (-DTRUTH) they
   are a scheduler that runs the program once for every schedule, one thread at a time, and prints
   the results that it saw. Nothing here is shared with the verifier. */
#ifndef TRUTH
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#define MEMORY(n) calloc(1, n)
#define SHARED(n)
#define STEP ((void)0)
#define MUTEX pthread_mutex_t
#define MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#define COND pthread_cond_t
#define COND_INIT PTHREAD_COND_INITIALIZER
#define LOCK(m) pthread_mutex_lock(&m)
#define UNLOCK(m) pthread_mutex_unlock(&m)
#define WAIT(c, m) pthread_cond_wait(&c, &m)
#define SIGNAL(c) pthread_cond_signal(&c)
#define BROADCAST(c) pthread_cond_broadcast(&c)
#define HANDLE pthread_t
#define SPAWN(h, f, a) pthread_create(&h, 0, f, a)
#define JOIN(h, r) pthread_join(h, &r)
/* what the verifier is asked: is one of these the result, or is the first one not? */
unsigned long oracle_values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
int oracle_count = 1, oracle_forbid = 1;
static void result(unsigned long r) {
  if (oracle_forbid) {
    assert(r != oracle_values[0]);
  } else {
    int found = 0;
    for (int k = 0; k < oracle_count; k++)
      if (oracle_values[k] == r) found = 1;
    assert(found);
  }
}
#else
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
enum { THREADS = 4, LONGEST = 400, MOST = 6000 };
typedef struct { int held; } MUTEX;
typedef struct { int unused; } COND;
#define MUTEX_INIT {0}
#define COND_INIT {0}
typedef int HANDLE;
struct thread {
  ucontext_t context;
  char *stack;
  void *(*function)(void *);
  void *argument, *value;
  int used, ended, signalled, joins;
  MUTEX *wants;
  COND *waits;
};
static struct thread threads[THREADS];
static ucontext_t home;
static int current, failed_to_end;
static int choices[LONGEST], options[LONGEST], taken, known;
static unsigned long results[9];
static int seen, too_many;
static int choose(int n) {
  if (n == 1) return 0;
  if (taken >= LONGEST) { failed_to_end = 1; return 0; }
  int c = taken < known ? choices[taken] : 0;
  options[taken] = n;
  choices[taken++] = c;
  return c;
}
static int enabled(struct thread *t) {
  if (!t->used || t->ended) return 0;
  if (t->waits && !t->signalled) return 0;
  if (t->wants && t->wants->held) return 0;
  if (t->joins >= 0 && !threads[t->joins].ended) return 0;
  return 1;
}
static void yield(void) { swapcontext(&threads[current].context, &home); }
static void body(void) {
  struct thread *t = &threads[current];
  t->value = t->function(t->argument);
  yield();
  t = &threads[current];
  t->ended = 1;
  yield();
}
static void spawn(int *h, void *(*f)(void *), void *a) {
  int n = 0;
  while (threads[n].used) n++;
  struct thread *t = &threads[n];
  char *stack = t->stack ? t->stack : malloc(65536);
  memset(t, 0, sizeof *t);
  t->stack = stack;
  t->function = f;
  t->argument = a;
  t->used = 1;
  t->joins = -1;
  getcontext(&t->context);
  t->context.uc_stack.ss_sp = stack;
  t->context.uc_stack.ss_size = 65536;
  t->context.uc_link = &home;
  makecontext(&t->context, body, 0);
  *h = n;
}
static void lock(MUTEX *m) {
  threads[current].wants = m;
  yield();
  threads[current].wants = 0;
  m->held = 1;
}
static void unlock(MUTEX *m) { yield(); m->held = 0; }
static void cond_wait(COND *c, MUTEX *m) {
  yield();
  m->held = 0;
  threads[current].waits = c;
  threads[current].signalled = 0;
  lock(m);
  threads[current].waits = 0;
}
static void cond_signal(COND *c, int all) {
  yield();
  int waiting[THREADS], n = 0;
  for (int t = 0; t < THREADS; t++)
    if (threads[t].used && threads[t].waits == c && !threads[t].signalled) waiting[n++] = t;
  if (all)
    for (int k = 0; k < n; k++) threads[waiting[k]].signalled = 1;
  else if (n)
    threads[waiting[choose(n)]].signalled = 1;
}
static void join(int h, void **r) {
  threads[current].joins = h;
  yield();
  threads[current].joins = -1;
  *r = threads[h].value;
}
/* not given back: a run is short */
#define MEMORY(n) calloc(1, n)
#define SHARED(n) __attribute__((section("shared" #n), used))
#define STEP yield()
#define LOCK(m) lock(&m)
#define UNLOCK(m) unlock(&m)
#define WAIT(c, m) cond_wait(&c, &m)
#define SIGNAL(c) cond_signal(&c, 0)
#define BROADCAST(c) cond_signal(&c, 1)
#define SPAWN(h, f, a) (yield(), spawn(&h, f, a))
#define JOIN(h, r) join(h, &r)
static void result(unsigned long r) {
  for (int k = 0; k < seen; k++)
    if (results[k] == r) return;
  if (seen == 8) too_many = 1;
  else results[seen++] = r;
}
static void *run_main(void *f) { ((int (*)(void))f)(); return 0; }
/* Runs a program under every schedule: `number complete values...`. */
static void enumerate(int number, int (*program)(void), char *from, char *to) {
  char *first = malloc(to - from);
  int runs = 0, complete = 1, more = 1;
  memcpy(first, from, to - from);
  seen = too_many = known = 0;
  while (more) {
    if (++runs > MOST) { complete = 0; break; }
    memcpy(from, first, to - from);
    for (int t = 0; t < THREADS; t++) threads[t].used = 0;
    taken = failed_to_end = 0;
    int h;
    spawn(&h, run_main, (void *)program);
    for (;;) {
      int able[THREADS], n = 0;
      for (int t = 0; t < THREADS; t++)
        if (enabled(&threads[t])) able[n++] = t;
      if (!n || threads[0].ended || failed_to_end) break;
      current = able[choose(n)];
      swapcontext(&home, &threads[current].context);
    }
    if (failed_to_end) complete = 0;
    while (taken > 0 && choices[taken - 1] + 1 >= options[taken - 1]) taken--;
    if (taken > 0) choices[taken - 1]++;
    known = taken;
    more = taken > 0;
  }
  printf("%d %d", number, complete && !too_many);
  for (int k = 0; k < seen; k++) printf(" %lu", results[k]);
  printf("\n");
  free(first);
}
#endif
