/* OpenMP's run time, in the place of clang's libomp: what clang makes of `#pragma omp` calls these functions.
 *
 * `foretell cc -fopenmp` compiles this file into the program, so that whatever threads do with each other goes
 * through functions that the scheduler knows, and whatever OpenMP leaves open (who is first at a `single`, who
 * gets the next part of a dynamic loop, who executes a task) is decided by steps that are recorded.
 *
 * Where the standard leaves a choice to the implementation it is made as libomp makes it: a region inside
 * another has one thread, cancellation is off, `schedule(runtime)` is static. The number of threads is the
 * machine's, but at most four, unless the program or OMP_NUM_THREADS says more.
 *
 * The functions' names and parameters are the interface of clang 22 (`llvm/Frontend/OpenMP/OMPKinds.def`). What
 * is not here (`target`, `doacross`, task reductions, ...) does not link; `-fopenmp=libomp` takes clang's library
 * instead, of which nothing is seen.
 *
 * It must be C and C++ at once: `foretell c++` compiles it with the options of the program. */
#pragma clang diagnostic ignored "-Weverything"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Set by the plugin in a program that has tasks: others need no barrier that executes them. Tasks of code that the
 * plugin has not seen are executed where they are made. */
extern char foretell_omp_tasks __attribute__((weak));

enum {
  MOST_THREADS = 1024,
  LOOPS = 8,  /* loops that threads without a barrier between them may be in at once */
  ARGUMENTS = 64,
  EXACT = 12 /* of them, with which a region is called with no more than it has */
};

typedef struct {
  int reserved, flags, more[2];
  const char *place;
} Ident;

typedef void (*Microtask)(int *, int *, ...);

/* A task as clang knows it; what is private to it follows. */
typedef struct Body {
  void *shared;
  int (*routine)(int, struct Body *);
  int part;
  union {
    int priority;
    int (*destructors)(int, struct Body *);
  } first, second;
} Body;

typedef struct Group {
  struct Group *outer;
  long left;
} Group;

typedef struct Task Task;

typedef struct Follower {
  Task *task;
  struct Follower *next;
} Follower;

typedef struct Dependence {
  void *address;
  int writes;
  Task *task;
  struct Dependence *next;
} Dependence;

struct Task {
  Task *parent, *queued, *made;
  Group *group;
  Follower *followers;
  Dependence *known; /* of its children */
  long children;     /* that are not finished */
  long waits_for;    /* tasks that are not finished */
  size_t size;
  int flags, is_final, finished;
  Dependence *last;
};

enum { TIED = 1, FINAL = 2, DESTRUCTORS = 8 };

/* A loop whose parts are handed out. */
typedef struct {
  unsigned long long next;    /* iteration */
  unsigned long long ordered; /* iteration whose turn it is */
  int left, round;
} Loop;

typedef struct Team {
  int size, level;
  pthread_barrier_t barrier;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int singles;
  void *copied;
  Loop loops[LOOPS];
  Task *first, **end; /* tasks that can begin */
  long unfinished, arrived, phase;
} Team;

typedef struct Worker {
  sem_t start, done;
  Microtask microtask;
  void **arguments;
  int count, number;
  Team *team; /* none: it is to end */
  pthread_t thread;
  struct Worker *next;
} Worker;

/* What a thread is at the moment. */
typedef struct State {
  Team *team;
  int number, singles, loops, reduces;
  int asked; /* threads for the next region */
  Task *made;            /* by it in this region */
  Task *task, *implicit; /* the task it is in; that of the region, which every thread has */
  /* The loop it is in. */
  Loop *loop;
  unsigned long long trips, part, position, current, until;
  long long lower, step;
  int schedule;
  struct State *outer;
} State;

static __thread State self;
static __thread Team alone;
static __thread Task alone_task;
static __thread Worker *workers;
static int wanted;
/* A variable with a name; a second region at the same time has one of the heap. */
static Team omp_team;
static char is_taken;

static void open_team(Team *team, int size, int level) {
  memset(team, 0, sizeof *team);
  team->size = size;
  team->level = level;
  team->end = &team->first;
  pthread_mutex_init(&team->lock, 0);
  pthread_cond_init(&team->changed, 0);
  if (size > 1) pthread_barrier_init(&team->barrier, 0, (unsigned)size);
}

static void close_team(Team *team) {
  if (team->size > 1) pthread_barrier_destroy(&team->barrier);
  pthread_cond_destroy(&team->changed);
  pthread_mutex_destroy(&team->lock);
}

static Team *team_of(void) {
  if (!self.team) {
    open_team(&alone, 1, 0);
    self.team = &alone;
    self.task = self.implicit = &alone_task;
  }
  return self.team;
}

static void enter(Team *team, int number, Task *implicit) {
  memset(&self, 0, sizeof self);
  memset(implicit, 0, sizeof *implicit);
  self.team = team;
  self.number = number;
  self.task = self.implicit = implicit;
}

/* ---- tasks ---- */

/* Nobody needs the tasks any more that the thread made in this region. */
static void forget_tasks(void) {
  Task *task = self.made;
  self.made = 0;
  while (task) {
    Task *next = task->made;
    free(task);
    task = next;
  }
}

static void enqueue(Team *team, Task *task) {
  task->queued = 0;
  *team->end = task;
  team->end = &task->queued;
}

static Body *body_of(Task *task) { return (Body *)(void *)((char *)task + ((sizeof(Task) + 15) & ~(size_t)15)); }
static Task *task_of(Body *body) { return (Task *)(void *)((char *)body - ((sizeof(Task) + 15) & ~(size_t)15)); }

static void execute(Task *task) {
  Task *outer = self.task;
  Body *body = body_of(task);
  self.task = task;
  body->routine(self.number, body);
  if (task->flags & DESTRUCTORS) body->first.destructors(self.number, body);
  self.task = outer;
}

/* With the lock. */
static void finish(Team *team, Task *task) {
  Follower *follower = task->followers;
  task->finished = 1;
  task->followers = 0;
  while (follower) {
    Follower *next = follower->next;
    if (--follower->task->waits_for == 0) enqueue(team, follower->task);
    free(follower);
    follower = next;
  }
  task->parent->children--;
  if (task->group) task->group->left--;
  team->unfinished--;
  pthread_cond_broadcast(&team->changed);
}

static int descends(Task *task, Task *from) {
  while (task && task != from) task = task->parent;
  return task != 0;
}

/* Executes one task, with the lock before and after; gives whether there was one. A thread in the midst of a task
 * takes only what descends from it. */
static int help(Team *team) {
  Task **place = &team->first;
  Task *task;
  while (*place && self.task != self.implicit && !descends(*place, self.task)) place = &(*place)->queued;
  task = *place;
  if (!task) return 0;
  *place = task->queued;
  if (team->end == &task->queued) team->end = place;
  pthread_mutex_unlock(&team->lock);
  execute(task);
  pthread_mutex_lock(&team->lock);
  finish(team, task);
  return 1;
}

static void barrier(Team *team) {
  long phase;
  if (team->size == 1) return;
  if (!&foretell_omp_tasks) {
    pthread_barrier_wait(&team->barrier);
    return;
  }
  pthread_mutex_lock(&team->lock);
  phase = team->phase;
  if (++team->arrived == team->size) pthread_cond_broadcast(&team->changed);
  while (team->phase == phase) {
    if (help(team)) continue;
    if (team->arrived == team->size && !team->unfinished) {
      team->arrived = 0;
      team->phase++;
      pthread_cond_broadcast(&team->changed);
    } else {
      pthread_cond_wait(&team->changed, &team->lock);
    }
  }
  pthread_mutex_unlock(&team->lock);
}

Body *__kmpc_omp_task_alloc(Ident *place, int thread, int flags, size_t size, size_t shared,
                            int (*routine)(int, Body *)) {
  size_t all = ((size + 15) & ~(size_t)15) + shared;
  Task *task = (Task *)calloc(1, ((sizeof(Task) + 15) & ~(size_t)15) + all);
  Body *body = body_of(task);
  (void)place, (void)thread;
  team_of();
  task->parent = self.task;
  task->group = self.task->group;
  task->size = all;
  task->flags = flags;
  task->is_final = (flags & FINAL) != 0 || self.task->is_final;
  body->routine = routine;
  body->shared = shared ? (char *)body + ((size + 15) & ~(size_t)15) : 0;
  task->made = self.made;
  self.made = task;
  return body;
}

/* With the lock. */
static void begin(Team *team, Task *task) {
  task->parent->children++;
  if (task->group) task->group->left++;
  team->unfinished++;
}

static void at_once(Team *team, Task *task) {
  pthread_mutex_lock(&team->lock);
  begin(team, task);
  pthread_mutex_unlock(&team->lock);
  execute(task);
  pthread_mutex_lock(&team->lock);
  finish(team, task);
  pthread_mutex_unlock(&team->lock);
}

static int is_at_once(Team *team) { return team->size == 1 || self.task->is_final || !&foretell_omp_tasks; }

int __kmpc_omp_task(Ident *place, int thread, Body *body) {
  Team *team = team_of();
  Task *task = task_of(body);
  (void)place, (void)thread;
  if (is_at_once(team)) {
    at_once(team, task);
    return 0;
  }
  pthread_mutex_lock(&team->lock);
  begin(team, task);
  enqueue(team, task);
  pthread_cond_broadcast(&team->changed);
  pthread_mutex_unlock(&team->lock);
  return 0;
}

void __kmpc_omp_task_begin_if0(Ident *place, int thread, Body *body) {
  Team *team = team_of();
  Task *task = task_of(body);
  (void)place, (void)thread;
  pthread_mutex_lock(&team->lock);
  begin(team, task);
  pthread_mutex_unlock(&team->lock);
  self.task = task;
}

void __kmpc_omp_task_complete_if0(Ident *place, int thread, Body *body) {
  Team *team = team_of();
  Task *task = task_of(body);
  (void)place, (void)thread;
  self.task = task->parent;
  pthread_mutex_lock(&team->lock);
  finish(team, task);
  pthread_mutex_unlock(&team->lock);
}

typedef struct {
  void *address;
  size_t length;
  unsigned char flags;
} Depend;

enum { OUT = 2, EXCLUSIVE = 4 };

/* What the task must wait for, with the lock. */
static void depend(Task *task, Task *parent, int count, Depend *list, int is_kept) {
  for (int i = 0; i < count; i++) {
    int writes = (list[i].flags & (OUT | EXCLUSIVE)) != 0;
    Dependence *known = parent->known, *one;
    for (; known; known = known->next) {
      if (known->address != list[i].address || known->task->finished || known->task == task) continue;
      if (!writes && !known->writes) continue;
      Follower *follower = (Follower *)malloc(sizeof *follower);
      follower->task = task;
      follower->next = known->task->followers;
      known->task->followers = follower;
      task->waits_for++;
    }
    if (!is_kept) continue;
    one = (Dependence *)malloc(sizeof *one);
    one->address = list[i].address;
    one->writes = writes;
    one->task = task;
    one->next = parent->known;
    parent->known = one;
  }
}

int __kmpc_omp_task_with_deps(Ident *place, int thread, Body *body, int count, Depend *list, int others,
                              Depend *other) {
  Team *team = team_of();
  Task *task = task_of(body);
  (void)place, (void)thread;
  if (is_at_once(team)) {
    at_once(team, task);
    return 0;
  }
  pthread_mutex_lock(&team->lock);
  begin(team, task);
  depend(task, task->parent, count, list, 1);
  depend(task, task->parent, others, other, 1);
  if (!task->waits_for) {
    enqueue(team, task);
    pthread_cond_broadcast(&team->changed);
  }
  pthread_mutex_unlock(&team->lock);
  return 0;
}

void __kmpc_omp_taskwait_deps_51(Ident *place, int thread, int count, Depend *list, int others, Depend *other,
                                 int no_wait) {
  Team *team = team_of();
  Task waiter;
  (void)place, (void)thread, (void)no_wait;
  if (team->size == 1) return;
  memset(&waiter, 0, sizeof waiter);
  pthread_mutex_lock(&team->lock);
  depend(&waiter, self.task, count, list, 0);
  depend(&waiter, self.task, others, other, 0);
  /* Whoever finishes the last of them would begin the waiter as a task; it stays one short of that. */
  waiter.waits_for++;
  while (waiter.waits_for > 1)
    if (!help(team)) pthread_cond_wait(&team->changed, &team->lock);
  pthread_mutex_unlock(&team->lock);
}

void __kmpc_omp_wait_deps(Ident *place, int thread, int count, Depend *list, int others, Depend *other) {
  __kmpc_omp_taskwait_deps_51(place, thread, count, list, others, other, 0);
}

int __kmpc_omp_taskwait(Ident *place, int thread) {
  Team *team = team_of();
  (void)place, (void)thread;
  if (team->size == 1) return 0;
  pthread_mutex_lock(&team->lock);
  while (self.task->children)
    if (!help(team)) pthread_cond_wait(&team->changed, &team->lock);
  pthread_mutex_unlock(&team->lock);
  return 0;
}

int __kmpc_omp_taskyield(Ident *place, int thread, int part) {
  (void)place, (void)thread, (void)part;
  sched_yield();
  return 0;
}

void __kmpc_taskgroup(Ident *place, int thread) {
  Group *group = (Group *)calloc(1, sizeof *group);
  (void)place, (void)thread;
  team_of();
  group->outer = self.task->group;
  self.task->group = group;
}

void __kmpc_end_taskgroup(Ident *place, int thread) {
  Team *team = team_of();
  Group *group = self.task->group;
  (void)place, (void)thread;
  pthread_mutex_lock(&team->lock);
  while (group->left)
    if (!help(team)) pthread_cond_wait(&team->changed, &team->lock);
  pthread_mutex_unlock(&team->lock);
  self.task->group = group->outer;
  free(group);
}

void __kmpc_taskloop(Ident *place, int thread, Body *body, int is_deferred, unsigned long long *lower,
                     unsigned long long *upper, long long step, int without_group, int kind,
                     unsigned long long grain, void *copy) {
  Team *team = team_of();
  Task *task = task_of(body);
  long long first = (long long)*lower, last = (long long)*upper;
  size_t low = (size_t)((char *)lower - (char *)body), high = (size_t)((char *)upper - (char *)body);
  unsigned long long trips = step > 0 ? (first > last ? 0 : (unsigned long long)(last - first) / (unsigned long long)step + 1)
                                      : (first < last ? 0 : (unsigned long long)(first - last) / (unsigned long long)-step + 1);
  unsigned long long parts = kind == 1 ? (trips + grain - 1) / grain : kind == 2 ? grain : (unsigned long long)team->size;
  unsigned long long done = 0;
  if (parts > trips) parts = trips;
  if (!without_group) __kmpc_taskgroup(place, thread);
  for (unsigned long long part = 0; part < parts; part++) {
    unsigned long long many = trips / parts + (part < trips % parts);
    Body *one = __kmpc_omp_task_alloc(place, thread, task->flags, task->size, 0, body->routine);
    memcpy(one, body, task->size);
    if (body->shared) one->shared = (char *)one + ((char *)body->shared - (char *)body);
    *(long long *)(void *)((char *)one + low) = first + (long long)done * step;
    done += many;
    *(long long *)(void *)((char *)one + high) = first + (long long)(done - 1) * step;
    if (copy) ((void (*)(Body *, Body *, int))copy)(one, body, part + 1 == parts);
    if (is_deferred) __kmpc_omp_task(place, thread, one);
    else at_once(team, task_of(one));
  }
  if (!without_group) __kmpc_end_taskgroup(place, thread);
}

/* ---- regions ---- */

/* Every function is called with the parameters that it has: a call with `...` would lose what they stand for. */
#define P1 void *
#define P2 P1, P1
#define P4 P2, P2
#define P8 P4, P4
#define P16 P8, P8
#define C ,
#define A1(i) , a[i]
#define A2(i) A1(i) A1(i + 1)
#define A4(i) A2(i) A2(i + 2)
#define A8(i) A4(i) A4(i + 4)
#define A16(i) A8(i) A8(i + 8)
#define CALL(n, types, values)                                                                                       \
  case n: ((void (*)(int *, int *, types))microtask)(&global, &bound values); break

static void call(Microtask microtask, int count, void **a) {
  int global = self.number, bound = self.number;
  switch (count) {
  case 0: ((void (*)(int *, int *))microtask)(&global, &bound); break;
  CALL(1, P1, A1(0));
  CALL(2, P2, A2(0));
  CALL(3, P2 C P1, A2(0) A1(2));
  CALL(4, P4, A4(0));
  CALL(5, P4 C P1, A4(0) A1(4));
  CALL(6, P4 C P2, A4(0) A2(4));
  CALL(7, P4 C P2 C P1, A4(0) A2(4) A1(6));
  CALL(8, P8, A8(0));
  CALL(9, P8 C P1, A8(0) A1(8));
  CALL(10, P8 C P2, A8(0) A2(8));
  CALL(11, P8 C P2 C P1, A8(0) A2(8) A1(10));
  CALL(12, P8 C P4, A8(0) A4(8));
  default: /* arguments that a function does not have are not looked at */
    ((void (*)(int *, int *, P16, P16, P16, P16))microtask)(&global, &bound A16(0) A16(16) A16(32) A16(48));
  }
}

static void *worker(void *argument) {
  Worker *me = (Worker *)argument;
  Task implicit;
  char name[16];
  snprintf(name, sizeof name, "omp-%d", me->number);
  pthread_setname_np(pthread_self(), name);
  for (;;) {
    sem_wait(&me->start);
    if (!me->team) return 0;
    enter(me->team, me->number, &implicit);
    call(me->microtask, me->count, me->arguments);
    if (&foretell_omp_tasks) barrier(me->team);
    forget_tasks();
    sem_post(&me->done);
  }
}

/* The workers of a thread end when it does, those of the program's first thread when the program does. */
static void retire(void *first) {
  Worker *one = (Worker *)first, *next;
  for (; one; one = next) {
    next = one->next;
    one->team = 0;
    sem_post(&one->start);
    pthread_join(one->thread, 0);
    sem_destroy(&one->start);
    sem_destroy(&one->done);
    free(one);
  }
}

static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void retire_own(void) {
  Worker *mine = workers;
  workers = 0;
  pthread_setspecific(at_end, 0);
  retire(mine);
}

static void prepare(void) {
  pthread_key_create(&at_end, retire);
  atexit(retire_own);
}

static Worker *new_worker(int number) {
  Worker *one = (Worker *)calloc(1, sizeof *one);
  one->number = number;
  sem_init(&one->start, 0, 0);
  sem_init(&one->done, 0, 0);
  if (pthread_create(&one->thread, 0, worker, one)) {
    fprintf(stderr, "OpenMP: no thread can be created\n");
    abort();
  }
  return one;
}

static int most_threads(void) {
  const char *said;
  long many;
  if (wanted > 0) return wanted;
  said = getenv("OMP_NUM_THREADS");
  many = said ? strtol(said, 0, 10) : 0;
  if (many > 0) return many > MOST_THREADS ? MOST_THREADS : (int)many;
  many = sysconf(_SC_NPROCESSORS_ONLN);
  return many < 2 ? 2 : many > 4 ? 4 : (int)many;
}

static void region(Microtask microtask, int count, void **arguments, int is_parallel) {
  Team *team = &omp_team;
  Task implicit;
  State outer;
  int size, number;
  Worker **place = &workers, *one;
  team_of();
  size = self.asked ? self.asked : most_threads();
  self.asked = 0;
  outer = self;
  if (!is_parallel || outer.team->level > 0) size = 1;
  if (__atomic_test_and_set(&is_taken, __ATOMIC_ACQUIRE)) team = (Team *)malloc(sizeof *team);
  open_team(team, size, outer.team->level + (size > 1));
  for (number = 1; number < size; number++, place = &(*place)->next) {
    if (!*place) {
      *place = new_worker(number);
      pthread_once(&once, prepare);
      pthread_setspecific(at_end, workers);
    }
    one = *place;
    one->microtask = microtask;
    one->count = count;
    one->arguments = arguments;
    one->team = team;
    sem_post(&one->start);
  }
  enter(team, 0, &implicit);
  call(microtask, count, arguments);
  if (size > 1 && &foretell_omp_tasks) barrier(team);
  forget_tasks();
  for (number = 1, one = workers; number < size; number++, one = one->next) sem_wait(&one->done);
  close_team(team);
  if (team == &omp_team) __atomic_clear(&is_taken, __ATOMIC_RELEASE);
  else free(team);
  self = outer;
}

/* Clang passes what a region needs as arguments `...`; to take them from there would be reads of memory that nobody
 * is seen to write. So there are as many parameters as a region can have, of which those that were not passed are not
 * looked at. */
#define L1(i) void *a##i
#define L8(i) L1(i##0), L1(i##1), L1(i##2), L1(i##3), L1(i##4), L1(i##5), L1(i##6), L1(i##7)
#define LIST L8(0), L8(1), L8(2), L8(3), L8(4), L8(5), L8(6), L8(7)
#define TAKE(i, n) if (count > n) arguments[n] = a##i
#define TAKE8(i, n)                                                                                                  \
  TAKE(i##0, n); TAKE(i##1, n + 1); TAKE(i##2, n + 2); TAKE(i##3, n + 3);                                            \
  TAKE(i##4, n + 4); TAKE(i##5, n + 5); TAKE(i##6, n + 6); TAKE(i##7, n + 7)

#define FORK(name, is_parallel)                                                                                      \
  void name(Ident *place, int count, Microtask microtask, LIST) {                                                    \
    void *arguments[ARGUMENTS];                                                                                      \
    (void)place;                                                                                                     \
    if (count > ARGUMENTS) {                                                                                         \
      fprintf(stderr, "OpenMP: a region has more than %d variables\n", ARGUMENTS);                                   \
      abort();                                                                                                       \
    }                                                                                                                \
    if (count > EXACT) memset(arguments, 0, sizeof arguments);                                                       \
    TAKE8(0, 0); TAKE8(1, 8); TAKE8(2, 16); TAKE8(3, 24);                                                            \
    TAKE8(4, 32); TAKE8(5, 40); TAKE8(6, 48); TAKE8(7, 56);                                                          \
    region(microtask, count, arguments, is_parallel);                                                                \
  }
FORK(__kmpc_fork_call, 1)
FORK(__kmpc_fork_teams, 0)

void __kmpc_fork_call_if(Ident *place, int count, Microtask microtask, int is_parallel, void *argument) {
  void *arguments[1];
  (void)place;
  arguments[0] = argument;
  region(microtask, count > 0, arguments, is_parallel);
}

void __kmpc_serialized_parallel(Ident *place, int thread) {
  State *outer = (State *)malloc(sizeof *outer);
  Team *team = (Team *)malloc(sizeof *team);
  Task *implicit = (Task *)malloc(sizeof *implicit);
  (void)place, (void)thread;
  team_of();
  *outer = self;
  open_team(team, 1, self.team->level);
  enter(team, 0, implicit);
  self.outer = outer;
}

void __kmpc_end_serialized_parallel(Ident *place, int thread) {
  State *outer = self.outer;
  (void)place, (void)thread;
  forget_tasks();
  close_team(self.team);
  free(self.team);
  free(self.implicit);
  self = *outer;
  free(outer);
}

void __kmpc_push_num_threads(Ident *place, int thread, int many) {
  (void)place, (void)thread;
  self.asked = many > MOST_THREADS ? MOST_THREADS : many;
}
void __kmpc_push_num_threads_strict(Ident *place, int thread, int many, int severity, const char *message) {
  (void)severity, (void)message;
  __kmpc_push_num_threads(place, thread, many);
}
void __kmpc_push_num_teams(Ident *place, int thread, int teams, int threads) {
  (void)place, (void)thread, (void)teams, (void)threads;
}
void __kmpc_push_num_teams_51(Ident *place, int thread, int low, int high, int threads) {
  (void)place, (void)thread, (void)low, (void)high, (void)threads;
}
void __kmpc_push_proc_bind(Ident *place, int thread, int kind) { (void)place, (void)thread, (void)kind; }
void __kmpc_set_thread_limit(Ident *place, int thread, int limit) { (void)place, (void)thread, (void)limit; }
void __kmpc_begin(Ident *place, int flags) { (void)place, (void)flags; }
void __kmpc_end(Ident *place) { (void)place; }
int __kmpc_ok_to_fork(Ident *place) { (void)place; return 1; }
int __kmpc_in_parallel(Ident *place) { (void)place; return team_of()->level > 0; }
int __kmpc_global_thread_num(Ident *place) { (void)place; return self.number; }
int __kmpc_global_num_threads(Ident *place) { (void)place; return team_of()->size; }
int __kmpc_bound_thread_num(Ident *place) { (void)place; return self.number; }
int __kmpc_bound_num_threads(Ident *place) { (void)place; return team_of()->size; }
int __kmpc_cancel(Ident *place, int thread, int kind) { (void)place, (void)thread, (void)kind; return 0; }
int __kmpc_cancellationpoint(Ident *place, int thread, int kind) { (void)place, (void)thread, (void)kind; return 0; }
void __kmpc_flush(Ident *place) { (void)place; __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __kmpc_barrier(Ident *place, int thread) { (void)place, (void)thread; barrier(team_of()); }
int __kmpc_cancel_barrier(Ident *place, int thread) { __kmpc_barrier(place, thread); return 0; }

/* ---- who does it ---- */

int __kmpc_master(Ident *place, int thread) { (void)place, (void)thread; return self.number == 0; }
void __kmpc_end_master(Ident *place, int thread) { (void)place, (void)thread; }
int __kmpc_masked(Ident *place, int thread, int filter) { (void)place, (void)thread; return self.number == filter; }
void __kmpc_end_masked(Ident *place, int thread) { (void)place, (void)thread; }

int __kmpc_single(Ident *place, int thread) {
  Team *team = team_of();
  int expected = self.singles++;
  (void)place, (void)thread;
  if (team->size == 1) return 1;
  return __atomic_compare_exchange_n(&team->singles, &expected, expected + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
void __kmpc_end_single(Ident *place, int thread) { (void)place, (void)thread; }

void __kmpc_copyprivate(Ident *place, int thread, size_t size, void *data, void (*copy)(void *, void *), int did) {
  Team *team = team_of();
  (void)place, (void)thread, (void)size;
  if (did) team->copied = data;
  barrier(team);
  if (!did) copy(data, team->copied);
  barrier(team);
}

/* ---- locks ---- */

/* A name has 32 bytes, all zero at first: a mutex that nobody has. A mutex has 40, of which glibc uses the last 16
 * for robust ones alone. */
void __kmpc_critical(Ident *place, int thread, void *name) {
  (void)place, (void)thread;
  pthread_mutex_lock((pthread_mutex_t *)name);
}
void __kmpc_critical_with_hint(Ident *place, int thread, void *name, unsigned hint) {
  (void)hint;
  __kmpc_critical(place, thread, name);
}
void __kmpc_end_critical(Ident *place, int thread, void *name) {
  (void)place, (void)thread;
  pthread_mutex_unlock((pthread_mutex_t *)name);
}

static pthread_mutex_t atomic = PTHREAD_MUTEX_INITIALIZER;
void __kmpc_atomic_start(void) { pthread_mutex_lock(&atomic); }
void __kmpc_atomic_end(void) { pthread_mutex_unlock(&atomic); }

enum { HAS_ATOMIC_REDUCTION = 0x10 };

int __kmpc_reduce_nowait(Ident *place, int thread, int count, size_t size, void *data, void (*reduce)(void *, void *),
                         void *name) {
  (void)count, (void)size, (void)data, (void)reduce;
  self.reduces = 1;
  if (team_of()->size == 1) return 1;
  if (place->flags & HAS_ATOMIC_REDUCTION) return self.reduces = 2;
  __kmpc_critical(place, thread, name);
  return 1;
}
void __kmpc_end_reduce_nowait(Ident *place, int thread, void *name) {
  if (self.reduces == 1 && team_of()->size > 1) __kmpc_end_critical(place, thread, name);
}
int __kmpc_reduce(Ident *place, int thread, int count, size_t size, void *data, void (*reduce)(void *, void *),
                  void *name) {
  return __kmpc_reduce_nowait(place, thread, count, size, data, reduce, name);
}
void __kmpc_end_reduce(Ident *place, int thread, void *name) {
  __kmpc_end_reduce_nowait(place, thread, name);
  barrier(team_of());
}

/* Of the 8 bytes that `omp_lock_t` has, a spin lock needs 4: it has the name of the program's variable. */
typedef pthread_spinlock_t Lock;
void omp_init_lock(Lock *lock) { pthread_spin_init(lock, PTHREAD_PROCESS_PRIVATE); }
void omp_init_lock_with_hint(Lock *lock, int hint) { (void)hint; omp_init_lock(lock); }
void omp_destroy_lock(Lock *lock) { pthread_spin_destroy(lock); }
void omp_set_lock(Lock *lock) { pthread_spin_lock(lock); }
void omp_unset_lock(Lock *lock) { pthread_spin_unlock(lock); }
int omp_test_lock(Lock *lock) { return pthread_spin_trylock(lock) == 0; }

typedef struct {
  pthread_mutex_t mutex;
  int depth;
} Nest;
typedef struct {
  Nest *nest;
} NestLock;
void omp_init_nest_lock(NestLock *lock) {
  pthread_mutexattr_t attributes;
  Nest *nest = (Nest *)calloc(1, sizeof *nest);
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&nest->mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  lock->nest = nest;
}
void omp_init_nest_lock_with_hint(NestLock *lock, int hint) { (void)hint; omp_init_nest_lock(lock); }
static Nest *nest_of(NestLock *lock) { return lock->nest; }
void omp_destroy_nest_lock(NestLock *lock) { pthread_mutex_destroy(&nest_of(lock)->mutex); free(nest_of(lock)); }
void omp_set_nest_lock(NestLock *lock) { pthread_mutex_lock(&nest_of(lock)->mutex); nest_of(lock)->depth++; }
void omp_unset_nest_lock(NestLock *lock) { nest_of(lock)->depth--; pthread_mutex_unlock(&nest_of(lock)->mutex); }
int omp_test_nest_lock(NestLock *lock) {
  return pthread_mutex_trylock(&nest_of(lock)->mutex) ? 0 : ++nest_of(lock)->depth;
}

/* ---- loops ---- */

enum { CHUNKED = 33, STATIC = 34, DYNAMIC = 35, GUIDED = 36, RUNTIME = 37, AUTO = 38, BALANCED = 45, ORDERED = 32 };

/* Bits say whether it must be monotonic; ordered kinds are 32 above, those that may not be merged 128. */
static int kind_of(int schedule) {
  schedule &= 0xffff;
  if (schedule >= 160) schedule -= 128;
  if (schedule > 64 && schedule < 80) schedule -= ORDERED;
  return schedule == RUNTIME || schedule == AUTO || schedule == 91 || schedule == 92 ? STATIC : schedule;
}

#define STATIC_LOOP(suffix, T, S, U)                                                                                 \
  void __kmpc_for_static_init_##suffix(Ident *place, int thread, int schedule, int *last, T *lower, T *upper,        \
                                       S *stride, S step, S chunk) {                                                 \
    T first = *lower, end = *upper;                                                                                  \
    U size = (U)team_of()->size, me = (U)self.number, trips, part, more;                                             \
    int is_distribution = (schedule & 0xffff) == 91 || (schedule & 0xffff) == 92;                                    \
    (void)place, (void)thread;                                                                                       \
    if (step > 0 ? first > end : first < end) {                                                                      \
      if (last) *last = 0;                                                                                           \
      *stride = step;                                                                                                \
      return;                                                                                                        \
    }                                                                                                                \
    trips = step > 0 ? ((U)end - (U)first) / (U)step + 1 : ((U)first - (U)end) / ((U)0 - (U)step) + 1;               \
    *stride = (S)(trips * (U)step);                                                                                  \
    if (is_distribution || size == 1) {                                                                              \
      if (last) *last = 1;                                                                                           \
      return;                                                                                                        \
    }                                                                                                                \
    switch (kind_of(schedule)) {                                                                                     \
    case CHUNKED:                                                                                                    \
      part = chunk < 1 ? 1 : (U)chunk;                                                                               \
      *lower = (T)((U)first + me * part * (U)step);                                                                  \
      *upper = (T)((U)*lower + (part - 1) * (U)step);                                                                \
      *stride = (S)(part * size * (U)step);                                                                          \
      if (last) *last = (trips - 1) / part % size == me;                                                             \
      return;                                                                                                        \
    case BALANCED:                                                                                                   \
      part = (trips + size - 1) / size;                                                                              \
      part = chunk < 1 ? part : (part + (U)chunk - 1) / (U)chunk * (U)chunk;                                         \
      if (me * part >= trips) {                                                                                      \
        *lower = (T)((U)end + (U)step);                                                                              \
        *upper = end;                                                                                                \
        if (last) *last = 0;                                                                                         \
        return;                                                                                                      \
      }                                                                                                              \
      more = me * part + part > trips ? trips : me * part + part;                                                    \
      *lower = (T)((U)first + me * part * (U)step);                                                                  \
      *upper = (T)((U)first + (more - 1) * (U)step);                                                                 \
      if (last) *last = more == trips;                                                                               \
      return;                                                                                                        \
    default:                                                                                                         \
      part = trips / size;                                                                                           \
      more = trips % size;                                                                                           \
      if (me >= trips) {                                                                                             \
        *lower = (T)((U)end + (U)step);                                                                              \
        *upper = end;                                                                                                \
        if (last) *last = 0;                                                                                         \
        return;                                                                                                      \
      }                                                                                                              \
      *lower = (T)((U)first + (me * part + (me < more ? me : more)) * (U)step);                                      \
      *upper = (T)((U)*lower + (part - 1 + (me < more)) * (U)step);                                                  \
      if (last) *last = me + 1 == (trips < size ? trips : size);                                                     \
    }                                                                                                                \
  }                                                                                                                  \
  void __kmpc_dist_for_static_init_##suffix(Ident *place, int thread, int schedule, int *last, T *lower, T *upper,   \
                                            T *all, S *stride, S step, S chunk) {                                    \
    *all = *upper;                                                                                                   \
    __kmpc_for_static_init_##suffix(place, thread, schedule, last, lower, upper, stride, step, chunk);               \
  }                                                                                                                  \
  void __kmpc_dispatch_init_##suffix(Ident *place, int thread, int schedule, T lower, T upper, S step, S chunk) {    \
    unsigned long long trips = 0;                                                                                    \
    (void)place, (void)thread;                                                                                       \
    if (step > 0 ? lower <= upper : lower >= upper)                                                                  \
      trips = step > 0 ? (unsigned long long)(((U)upper - (U)lower) / (U)step) + 1                                   \
                       : (unsigned long long)(((U)lower - (U)upper) / ((U)0 - (U)step)) + 1;                         \
    dispatch(schedule, (long long)lower, (long long)step, trips, chunk < 1 ? 0 : (unsigned long long)chunk);         \
  }                                                                                                                  \
  int __kmpc_dispatch_next_##suffix(Ident *place, int thread, int *last, T *lower, T *upper, S *stride) {            \
    unsigned long long first, end;                                                                                   \
    (void)place, (void)thread;                                                                                       \
    if (!next_part(&first, &end)) {                                                                                  \
      if (last) *last = 0;                                                                                           \
      return 0;                                                                                                      \
    }                                                                                                                \
    *lower = (T)((unsigned long long)self.lower + first * (unsigned long long)self.step);                            \
    *upper = (T)((unsigned long long)self.lower + (end - 1) * (unsigned long long)self.step);                        \
    *stride = (S)self.step;                                                                                          \
    if (last) *last = end == self.trips;                                                                             \
    return 1;                                                                                                        \
  }                                                                                                                  \
  void __kmpc_dispatch_fini_##suffix(Ident *place, int thread) {                                                     \
    (void)place, (void)thread;                                                                                       \
    end_iteration();                                                                                                 \
  }

/* A place for a loop is used again when all threads have left it; the thread with the number 0 makes it new. */
static void dispatch(int schedule, long long lower, long long step, unsigned long long trips,
                     unsigned long long chunk) {
  Team *team = team_of();
  int index = self.loops++, round = index / LOOPS;
  Loop *loop = &team->loops[index % LOOPS];
  int kind = kind_of(schedule);
  if (round > 0 && self.number == 0) {
    while (__atomic_load_n(&loop->left, __ATOMIC_ACQUIRE) != team->size * round) sched_yield();
    loop->next = 0;
    loop->ordered = 0;
    __atomic_store_n(&loop->round, round, __ATOMIC_RELEASE);
  } else if (round > 0) {
    while (__atomic_load_n(&loop->round, __ATOMIC_ACQUIRE) != round) sched_yield();
  }
  self.loop = loop;
  self.trips = trips;
  self.lower = lower;
  self.step = step;
  self.schedule = kind;
  self.position = 0;
  self.part = chunk;
  if (kind == DYNAMIC || kind == CHUNKED || kind == GUIDED) self.part = chunk ? chunk : 1;
}

static void leave(void) {
  __atomic_fetch_add(&self.loop->left, 1, __ATOMIC_RELEASE);
  self.loop = 0;
}

static int next_part(unsigned long long *first, unsigned long long *end) {
  Team *team = team_of();
  unsigned long long size = (unsigned long long)team->size, me = (unsigned long long)self.number, many = self.part;
  if (!self.loop) return 0;
  switch (self.schedule) {
  case DYNAMIC:
    *first = __atomic_fetch_add(&self.loop->next, many, __ATOMIC_ACQ_REL);
    break;
  case GUIDED:
    *first = __atomic_load_n(&self.loop->next, __ATOMIC_ACQUIRE);
    do {
      if (*first >= self.trips) break;
      many = (self.trips - *first) / (2 * size);
      if (many < self.part) many = self.part;
    } while (!__atomic_compare_exchange_n(&self.loop->next, first, *first + many, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    break;
  case CHUNKED:
    *first = (self.position++ * size + me) * many;
    break;
  default:
    many = self.trips / size + (me < self.trips % size);
    *first = me * (self.trips / size) + (me < self.trips % size ? me : self.trips % size);
    if (self.position++ || !many) *first = self.trips;
  }
  if (*first >= self.trips) {
    leave();
    return 0;
  }
  *end = *first + many > self.trips ? self.trips : *first + many;
  self.current = *first;
  self.until = *end;
  return 1;
}

static void await_turn(void) {
  Team *team = team_of();
  pthread_mutex_lock(&team->lock);
  while (self.loop->ordered != self.current) pthread_cond_wait(&team->changed, &team->lock);
  pthread_mutex_unlock(&team->lock);
}

static void end_iteration(void) {
  Team *team = team_of();
  if (!self.loop) return;
  await_turn();
  pthread_mutex_lock(&team->lock);
  self.loop->ordered = ++self.current;
  pthread_cond_broadcast(&team->changed);
  pthread_mutex_unlock(&team->lock);
}

void __kmpc_ordered(Ident *place, int thread) {
  (void)place, (void)thread;
  if (self.loop) await_turn();
}
void __kmpc_end_ordered(Ident *place, int thread) { (void)place, (void)thread; }

STATIC_LOOP(4, int, int, unsigned)
STATIC_LOOP(4u, unsigned, int, unsigned)
STATIC_LOOP(8, long long, long long, unsigned long long)
STATIC_LOOP(8u, unsigned long long, long long, unsigned long long)
void __kmpc_for_static_fini(Ident *place, int thread) { (void)place, (void)thread; }
void __kmpc_dispatch_deinit(Ident *place, int thread) { (void)place, (void)thread; }

/* ---- what a program asks ---- */

int omp_get_thread_num(void) { return self.number; }
int omp_get_num_threads(void) { return team_of()->size; }
int omp_get_max_threads(void) { return most_threads(); }
int omp_get_num_procs(void) { return (int)sysconf(_SC_NPROCESSORS_ONLN); }
int omp_get_thread_limit(void) { return MOST_THREADS; }
int omp_in_parallel(void) { return team_of()->level > 0; }
int omp_in_final(void) { team_of(); return self.task->is_final; }
int omp_get_level(void) { return team_of()->level; }
int omp_get_active_level(void) { return team_of()->level; }
int omp_get_max_active_levels(void) { return 1; }
int omp_get_supported_active_levels(void) { return 1; }
int omp_get_ancestor_thread_num(int level) { return level == 0 ? 0 : level == team_of()->level ? self.number : -1; }
int omp_get_team_size(int level) { return level == 0 ? 1 : level == team_of()->level ? team_of()->size : -1; }
int omp_get_num_teams(void) { return 1; }
int omp_get_team_num(void) { return 0; }
int omp_get_dynamic(void) { return 0; }
int omp_get_nested(void) { return 0; }
int omp_get_cancellation(void) { return 0; }
int omp_get_max_task_priority(void) { return 0; }
int omp_get_num_devices(void) { return 0; }
int omp_get_default_device(void) { return 0; }
int omp_is_initial_device(void) { return 1; }
void omp_set_num_threads(int many) { wanted = many > MOST_THREADS ? MOST_THREADS : many; }
void omp_set_dynamic(int is_dynamic) { (void)is_dynamic; }
void omp_set_nested(int is_nested) { (void)is_nested; }
void omp_set_max_active_levels(int levels) { (void)levels; }
double omp_get_wtime(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
double omp_get_wtick(void) { return 1e-9; }

#ifdef __cplusplus
}
#endif
