/* The scheduler and the search.
 *
 * The program is compiled with the hooks of -fsanitize=thread, which are defined in hooks.c, and with the
 * functions of threads.c in place of those of the C library. Its threads are coroutines of one kernel
 * thread, so that an execution can be copied whole: variables, stacks and heap. A thread stops before
 * everything that another thread can notice (a step); where there are several ways to go on, the execution
 * is copied and each way is gone in turn. What differs only in the order of
 * independent steps is done once (sleep sets, Godefroid 1996; SCHEDULES=all does it every time). Memory is
 * sequentially consistent; nobody wakes by itself; a time limit may be over whenever the thread would have
 * to wait.
 *
 * Local accesses. To memory that only one thread uses, others cannot notice an access. Which memory that is
 * is assumed and checked: at the first access of a second thread the search begins anew, without that
 * assumption. Take a shortest execution in which an assumption fails: up to there no assumption fails, so it
 * differs from one that is searched only in the order of independent steps, and its last step is made there
 * too.
 *
 * Waiting in a loop. A thread that comes to the same place with the same local state (stack, registers
 * that outlive calls, thread-local variables) while nothing has been written does the same again, for ever:
 * it waits until something is written.
 *
 * SCHEDULES: sleep (all, each up to the order of independent steps), all, or RUNS of random:RUNS:SEED,
 * pct:RUNS:SEED:DEPTH (Burckhardt 2010), pos:RUNS:SEED (partial-order sampling, Yuan 2018).
 * SCHEDULES_LIMIT: executions after which the search gives up. */
#define _GNU_SOURCE
#include "execution.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <unistd.h>

enum { CELLS = 1 << 11, WAYS = MOST_THREADS * 8 };
static char *const stacks = (char *)0x610000000000;
static char *const copies = (char *)0x620000000000;
static const size_t copies_size = (size_t)8 << 30;

/* One execution. All of it is in variables like these, and copied with those of the program. */
struct thread threads[MOST_THREADS];
int count, current;
static uint64_t version; /* how often something was written */
static struct { int thread, outcome; struct op op; } asleep[WAYS];
static int asleep_count;
static unsigned steps_taken;
/* Who has used the memory while others existed, and the last to write it. */
static struct cell {
  uintptr_t cell;
  unsigned users;
  int written;
} cells[CELLS];
static struct { uintptr_t object; uint64_t writer; } writers[CELLS];
static int cells_used, writers_used;

/* What all executions know of each other. */
enum { SHARED = 1 << 12, RESULTS = 4096, HASHES = 1 << 18 };
static struct common *common;
struct common {
  uintptr_t shared[SHARED];
  int anew, full;
  struct { char what[24]; long value; unsigned long times, first; } results[RESULTS];
  int results_count;
  unsigned long executions, cut, limit;
  unsigned long paths, reads;
  uint64_t path_set[HASHES], read_set[HASHES];
  unsigned longest;
  ucontext_t search;
  /* Ways to go on, and copies of the executions at the places that had several. */
  int ways, thread[WAYS], outcome[WAYS];
  int copies_count;
  struct copy {
    int ways, taken, thread[WAYS], outcome[WAYS];
    char *memory;
  } copy[4096];
  char *copies_end;
};

static enum { ALL, SLEEP_SETS, RANDOM, PCT, POS } mode;
static unsigned long runs;
static uint64_t random_state;
static unsigned change_points[16];
static int depth;

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static uint64_t next_random(void) { return random_state = mix(random_state, 1); }

static int add_hash(uint64_t *set, uint64_t hash) {
  if (hash == 0) hash = 1;
  for (uint64_t i = hash, tries = 0; tries < HASHES / 2; i++, tries++) {
    uint64_t *slot = &set[i % HASHES];
    if (*slot == hash) return 0;
    if (*slot == 0) return *slot = hash, 1;
  }
  common->full = 1;
  return 0;
}

static void say(const char *what, long value) {
  for (int i = 0; i < common->results_count; i++) {
    if (common->results[i].value == value && strcmp(common->results[i].what, what) == 0) {
      common->results[i].times++;
      return;
    }
  }
  if (common->results_count == RESULTS) { common->full = 1; return; }
  int i = common->results_count++;
  snprintf(common->results[i].what, sizeof common->results[i].what, "%s", what);
  common->results[i].value = value;
  common->results[i].times = 1;
  common->results[i].first = common->executions;
}

/* What the program says of its end. */
static long state;
static int has_state;
void explored_state(long value) { state = value, has_state = 1; }

/* The running execution is over. */
__attribute__((noreturn)) static void leave(void) {
  common->ways = 0;
  setcontext(&common->search);
  abort();
}

void found(const char *what, long value) {
  if (what != NULL) say(what, value);
  common->executions++;
  uint64_t path = 0, reads = 0;
  for (int i = 0; i < count; i++) {
    path += mix(mix(i, 3), threads[i].path);
    reads += threads[i].trace;
  }
  common->paths += add_hash(common->path_set, path);
  common->reads += add_hash(common->read_set, mix(reads, path));
  if (steps_taken > common->longest) common->longest = steps_taken;
  if (common->limit && common->executions >= common->limit) common->full = 1;
  leave();
}

/* Executions like this one are not followed further. */
void explored_give_up(void) { found(NULL, 0); }

static void too_large(void) {
  common->full = 1;
  found("too much memory", 0);
}

static void end_of_program(void) {
  if (has_state) found("state", state);
  found("end", 0);
}

static int overlap(const struct op *a, const struct op *b) {
  if (a->kind == ACCESS && b->kind == ACCESS)
    return a->object < b->object + b->size && b->object < a->object + a->size;
  return a->object == b->object || (a->other && (a->other == b->object || a->other == b->other)) ||
         (b->other && a->object == b->other);
}

/* May the order of the two make a difference? */
static int dependent(const struct op *a, const struct op *b) {
  if (a->kind == NOTHING || b->kind == NOTHING) return 0;
  if (a->kind == END_ALL || b->kind == END_ALL) return 1;
  return overlap(a, b) && (a->writes || b->writes);
}

static int is_shared(uintptr_t cell) {
  for (unsigned i = cell % SHARED;; i = (i + 1) % SHARED) {
    if (common->shared[i] == cell) return 1;
    if (common->shared[i] == 0) return 0;
  }
}

/* Is the access one that others can notice? */
static int is_visible(const struct op *op) {
  for (uintptr_t cell = op->object / 4; cell <= (op->object + op->size - 1) / 4; cell++)
    if (is_shared(cell)) return 1;
  return 0;
}

static int others_exist(void) {
  for (int i = 0; i < count; i++)
    if (i != current && threads[i].exists && !threads[i].joined) return 1;
  return 0;
}

/* Checks the assumption that memory is local. */
static void note_use(const struct op *op) {
  if (!others_exist()) return;
  for (uintptr_t cell = op->object / 4; cell <= (op->object + op->size - 1) / 4; cell++) {
    struct cell *slot = &cells[cell % CELLS];
    while (slot->cell != 0 && slot->cell != cell)
      slot = slot == &cells[CELLS - 1] ? cells : slot + 1;
    if (slot->cell == 0 && ++cells_used > CELLS / 2) too_large();
    slot->cell = cell;
    slot->users |= 1u << current;
    slot->written |= op->writes;
    if (!slot->written || (slot->users & (slot->users - 1)) == 0 || is_shared(cell)) continue;
    unsigned i = cell % SHARED;
    while (common->shared[i] != 0) i = (i + 1) % SHARED;
    common->shared[i] = cell;
    common->anew = 1;
  }
}

static uint64_t *writer_of(uintptr_t object) {
  unsigned i = mix(object, 5) % CELLS;
  while (writers[i].object != 0 && writers[i].object != object) i = (i + 1) % CELLS;
  if (writers[i].object == 0 && ++writers_used > CELLS / 2) too_large();
  writers[i].object = object;
  return &writers[i].writer;
}

/* Who read what from whom. */
static void note_reads(int number, const struct op *op, int outcome) {
  struct thread *thread = &threads[number];
  uint64_t me = mix(mix(number, 17), ++thread->events);
  uintptr_t last = op->kind == ACCESS ? (op->object + op->size - 1) / 4 : op->object;
  for (uintptr_t at = op->kind == ACCESS ? op->object / 4 : op->object; at <= last; at++) {
    uint64_t *writer = writer_of(at);
    if (op->kind != ACCESS || op->writes != 1) thread->trace += mix(mix(me, *writer), outcome);
    if (op->writes) *writer = me;
  }
  if (op->other) {
    uint64_t *writer = writer_of(op->other);
    thread->trace += mix(me, *writer);
    *writer = me;
  }
}

__attribute__((noinline)) static uint64_t local_state(struct thread *thread, void *at) {
  /* Registers that outlive calls go to the stack. */
  __builtin_unwind_init();
  uint64_t hash = mix((uint64_t)at, 7);
  char *low = (char *)__builtin_frame_address(0);
  for (char *p = low; p + 8 <= thread->stack_top; p += 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    hash = mix(hash, word);
  }
  return hash_of_tls(hash);
}

static void note_loop(struct thread *thread, void *at) {
  uint64_t local = local_state(thread, at);
  thread->spins = 0;
  for (unsigned i = 0; i < SEEN; i++) {
    struct seen *seen = &thread->seen[i];
    if (seen->at == at && seen->local == local && seen->version == version) {
      thread->spins = 1;
      thread->spins_at = version;
      return;
    }
  }
  thread->seen[thread->seen_count++ % SEEN] = (struct seen){at, local, version};
}

static int enabled(int thread, int outcome) {
  struct thread *t = &threads[thread];
  if (!t->exists || t->ended) return 0;
  struct op *op = &t->next;
  if (t->spins && t->spins_at == version) return 0;
  switch (op->kind) {
  case JOIN: return outcome == 0 && threads[op->object].ended;
  case SLEEP: return outcome == 1 && op->timed;
  case ARRIVED: return 0;
  case TIMED_LOCK:
  case TIMED_SEMAPHORE_WAIT: return possible(thread, op) ? outcome == 0 : outcome == 1;
  case SIGNAL: {
    int most = waiters(op->object);
    return outcome < (most ? most : 1);
  }
  default: return outcome == 0 && possible(thread, op);
  }
}

static void begin(void) {
  struct thread *thread = &threads[current];
  thread_end(thread->entry(thread->argument));
}

static void draw(struct thread *thread) {
  thread->priority = (mode == PCT ? 1u << 20 : 0) + (next_random() >> 8);
}

/* One of the ways to go on, in a random run. */
static int choose(int n, const int *thread) {
  if (mode == RANDOM) return next_random() % n;
  int best = 0;
  for (int i = 1; i < n; i++)
    if (threads[thread[i]].priority > threads[thread[best]].priority) best = i;
  if (mode == PCT) {
    for (int i = 0; i < depth; i++)
      if (change_points[i] == steps_taken) threads[thread[best]].priority = i;
    best = 0;
    for (int i = 1; i < n; i++)
      if (threads[thread[i]].priority > threads[thread[best]].priority) best = i;
  }
  /* The outcomes of one thread have one priority. */
  int same = 0, pick;
  for (int i = 0; i < n; i++) same += thread[i] == thread[best];
  pick = next_random() % same;
  for (int i = 0; i < n; i++)
    if (thread[i] == thread[best] && pick-- == 0) return i;
  return best;
}

/* The thread takes its next step. */
static void take(int next, int outcome) {
  struct op *op = &threads[next].next;
  threads[next].outcome = outcome;
  steps_taken++;
  if (mode == POS) {
    for (int i = 0; i < count; i++)
      if (i != next && threads[i].exists && dependent(&threads[i].next, op)) draw(&threads[i]);
    draw(&threads[next]);
  }
  note_reads(next, op, outcome);
}

static void fall_asleep(const int *thread, const int *outcome, int taken) {
  int kept = 0, next = thread[taken];
  struct op *op = &threads[next].next;
  for (int s = 0; s < asleep_count; s++)
    if (asleep[s].thread != next && !dependent(&asleep[s].op, op)) asleep[kept++] = asleep[s];
  for (int i = 0; i < taken; i++) {
    if (thread[i] == next || dependent(&threads[thread[i]].next, op)) continue;
    asleep[kept].thread = thread[i];
    asleep[kept].outcome = outcome[i];
    asleep[kept++].op = threads[thread[i]].next;
  }
  asleep_count = kept;
}

static int sleeps(int thread, int outcome) {
  for (int s = 0; s < asleep_count; s++)
    if (asleep[s].thread == thread && asleep[s].outcome == outcome) return 1;
  return 0;
}

/* Somebody goes on. */
static void go_on(void) {
  int me = current, next = -1;
  /* What nobody can notice is done at once; to join a thread that has ended is such a step. */
  for (int i = 0; i < count && next < 0; i++) {
    struct op *op = &threads[i].next;
    int local = op->kind == NOTHING || (op->kind == JOIN && threads[op->object].ended);
    if (threads[i].exists && !threads[i].ended && local) {
      next = i;
      threads[i].outcome = 0;
    }
  }
  if (next < 0) {
    int *thread = common->thread, *outcome = common->outcome, n = 0, all = 0;
    for (int i = 0; i < count; i++)
      for (int o = 0; o < 8; o++) {
        if (!enabled(i, o)) continue;
        all++;
        if (!sleeps(i, o)) thread[n] = i, outcome[n++] = o;
      }
    if (all == 0) found("hang", 0);
    if (n == 0) {
      common->cut++;
      leave();
    }
    if (n > 1 && mode <= SLEEP_SETS) {
      common->ways = n;
      save_tls(&threads[me], 0);
      swapcontext(&threads[me].context, &common->search);
      return;
    }
    int taken = n > 1 ? choose(n, thread) : 0;
    if (mode == SLEEP_SETS) fall_asleep(thread, outcome, taken);
    next = thread[taken];
    take(next, outcome[taken]);
  }
  if (next != me) {
    save_tls(&threads[me], 0);
    restore_tls(&threads[next]);
    current = next;
    swapcontext(&threads[me].context, &threads[next].context);
  }
}

/* A thread's own stack is part of its local state. */
static int on_stack(const struct thread *thread, uintptr_t address) {
  return address < (uintptr_t)thread->stack_top && address >= (uintptr_t)thread->stack_top - STACK;
}

void changed(void) { version++; }

int step(struct op op) {
  if (common == NULL) return 0; /* before main */
  struct thread *thread = &threads[current];
  if (op.kind == ACCESS) {
    if (is_freed(op.object)) found("crash", 0);
    thread->path = mix(thread->path, mix((uint64_t)op.at, op.object));
    if (!is_thread_local(op.object)) note_use(&op);
    if (is_thread_local(op.object) || !is_visible(&op)) {
      if (op.writes == 1 && !on_stack(thread, op.object)) version++;
      note_loop(thread, op.at);
      /* A loop that waits for what is assumed to be local: the others come to it. */
      if (!thread->spins) return 0;
    }
  } else {
    thread->path = mix(thread->path, mix((uint64_t)op.at, op.kind));
  }
  note_loop(thread, op.at);
  thread->next = op;
  thread->outcome = 0;
  go_on();
  thread->next.kind = NOTHING;
  if (op.kind != ACCESS || op.writes == 1) version++;
  thread->path = mix(thread->path, thread->outcome);
  return thread->outcome;
}

/* The program took a branch. */
void __sanitizer_cov_trace_pc(void) {
  struct thread *thread = &threads[current];
  thread->path = mix(thread->path, (uint64_t)__builtin_return_address(0));
}

int self(void) { return current; }

int thread_new(void *(*entry)(void *), void *argument) {
  if (count == MOST_THREADS) found("too many threads", 0);
  struct thread *thread = &threads[count];
  memset(thread, 0, sizeof *thread);
  thread->exists = 1;
  thread->entry = entry;
  thread->argument = argument;
  char *stack = stacks + (size_t)count * 2 * STACK;
  getcontext(&thread->context);
  thread->context.uc_stack.ss_sp = stack;
  thread->context.uc_stack.ss_size = STACK;
  thread->stack_top = stack + STACK;
  makecontext(&thread->context, begin, 0);
  save_tls(thread, 1);
  draw(thread);
  __libc_single_threaded = 0;
  return count++;
}

void thread_end(void *result) {
  struct thread *thread = &threads[current];
  thread->result = result;
  thread->ended = 1;
  thread->next.kind = END_ALL;
  version++;
  go_on();
  abort();
}

void *thread_result(int thread) { return threads[thread].result; }
void thread_joined(int thread) { threads[thread].joined = 1; }
void **thread_value(unsigned key) { return &threads[current].values[key % VALUES]; }

int waiters(uintptr_t condition) {
  int n = 0;
  for (int i = 0; i < count; i++)
    n += threads[i].exists && threads[i].next.kind == SLEEP && threads[i].next.object == condition;
  return n;
}

void wake(uintptr_t condition, int which) {
  for (int i = 0; i < count; i++) {
    struct op *op = &threads[i].next;
    if (!threads[i].exists || op->kind != SLEEP || op->object != condition) continue;
    if (which > 0) { which--; continue; }
    *op = (struct op){.kind = LOCK, .writes = 2, .object = op->other};
    if (which == 0) return;
  }
}

void wake_barrier(uintptr_t barrier) {
  for (int i = 0; i < count; i++) {
    struct op *op = &threads[i].next;
    if (threads[i].exists && op->kind == ARRIVED && op->object == barrier) op->kind = NOTHING;
  }
}

static void died(int signal) {
  (void)signal;
  found("crash", 0);
}

int __real_main(int argc, char **argv, char **envp);
int __wrap_main(int argc, char **argv, char **envp);
static int program_argc;
static char **program_argv, **program_envp;

static void *run_main(void *unused) {
  (void)unused;
  __real_main(program_argc, program_argv, program_envp);
  step((struct op){.kind = END_ALL, .writes = 2});
  end_of_program();
  return NULL;
}

static void push_copy(void) {
  if (common->copies_count == 4096 || common->copies_end > copies + copies_size - (64 << 20)) {
    common->full = 1;
    return;
  }
  struct copy *copy = &common->copy[common->copies_count++];
  copy->ways = common->ways;
  copy->taken = 0;
  memcpy(copy->thread, common->thread, sizeof copy->thread);
  memcpy(copy->outcome, common->outcome, sizeof copy->outcome);
  copy->memory = common->copies_end;
  common->copies_end = copy_execution(copy->memory, 0);
}

/* Runs until the execution is over or there are several ways to go on. */
static void run_thread(int next) {
  restore_tls(&threads[next]);
  current = next;
  swapcontext(&common->search, &threads[next].context);
}

/* All executions, under the assumptions so far. */
static void search(char *start) {
  copy_execution(start, 1);
  common->copies_count = 0;
  run_thread(0);
  for (;;) {
    if (common->anew || common->full) return;
    if (common->ways > 0) push_copy();
    if (common->copies_count == 0) return;
    struct copy *copy = &common->copy[common->copies_count - 1];
    copy_execution(copy->memory, 1);
    int taken = copy->taken++, next = copy->thread[taken];
    if (copy->taken == copy->ways) {
      common->copies_count--;
      common->copies_end = copy->memory;
    }
    if (mode == SLEEP_SETS) fall_asleep(copy->thread, copy->outcome, taken);
    take(next, copy->outcome[taken]);
    run_thread(next);
  }
}

static void forget(void) {
  common->anew = common->results_count = 0;
  common->executions = common->cut = common->paths = common->reads = 0;
  memset(common->path_set, 0, sizeof common->path_set);
  memset(common->read_set, 0, sizeof common->read_set);
}

static void walk(char *start, uint64_t seed) {
  /* First runs find out which memory is shared, and how long a run is. */
  for (unsigned long run = 0; run < runs + 20; run++) {
    if (run == 20) forget();
    copy_execution(start, 1);
    random_state = mix(seed, run);
    for (int i = 0; i < depth && common->longest; i++)
      change_points[i] = next_random() % common->longest;
    draw(&threads[0]);
    run_thread(0);
  }
}

static void *map(void *at, size_t size, int kind) {
  void *memory = mmap(at, size, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) _exit(9);
  return memory;
}

int __wrap_main(int argc, char **argv, char **envp) {
  common = map(NULL, sizeof *common, MAP_PRIVATE);
  map(stacks, (size_t)MOST_THREADS * 2 * STACK, MAP_PRIVATE | MAP_FIXED);
  map(copies, copies_size, MAP_PRIVATE | MAP_FIXED);
  const char *how = getenv("SCHEDULES"), *limit = getenv("SCHEDULES_LIMIT");
  unsigned long long seed = 0;
  mode = SLEEP_SETS;
  if (how && strcmp(how, "all") == 0) mode = ALL;
  else if (how && sscanf(how, "random:%lu:%llu", &runs, &seed) == 2) mode = RANDOM;
  else if (how && sscanf(how, "pct:%lu:%llu:%d", &runs, &seed, &depth) == 3 && depth < 16) mode = PCT;
  else if (how && sscanf(how, "pos:%lu:%llu", &runs, &seed) == 2) mode = POS;
  if (limit && mode <= SLEEP_SETS) common->limit = strtoul(limit, NULL, 10);
  stack_t alternate = {.ss_sp = map(NULL, 64 << 10, MAP_PRIVATE), .ss_size = 64 << 10};
  sigaltstack(&alternate, NULL);
  struct sigaction action = {.sa_handler = died, .sa_flags = SA_ONSTACK};
  int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  for (int i = 0; i < 4; i++) sigaction(fatal[i], &action, NULL);
  program_argc = argc, program_argv = argv, program_envp = envp;
  find_memory();
  count = 0;
  thread_new(run_main, NULL);
  char *start = copies;
  common->copies_end = copy_execution(start, 0);
  char *after_start = common->copies_end;
  if (mode >= RANDOM) {
    walk(start, seed);
  } else {
    do {
      forget();
      common->copies_end = after_start;
      search(start);
    } while (common->anew);
  }
  FILE *out = fdopen(dup(2), "w");
  for (int i = 0; i < common->results_count; i++)
    fprintf(out, "%s %ld times %lu first %lu\n", common->results[i].what, common->results[i].value,
            common->results[i].times, common->results[i].first);
  fprintf(out, "executions %lu\ncut %lu\npaths %lu\nreads %lu\n", common->executions, common->cut,
          common->paths, common->reads);
  fprintf(out, "%s\n", common->full ? "limit" : "done");
  fflush(out);
  _exit(0);
}

void __wrap_exit(int status) __attribute__((noreturn));
void __wrap_exit(int status) {
  (void)status;
  step((struct op){.kind = END_ALL, .writes = 2});
  end_of_program();
  __builtin_unreachable();
}
