/* Runs a real program under every schedule. What is guaranteed, and what a step is, stands in core.c. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { MOST_THREADS = 32 };

/* What a thread does next. */
enum kind {
  NOTHING, /* nothing that another thread can notice */
  ACCESS,  /* reads or writes `size` bytes at `object` */
  LOCK,
  TIMED_LOCK, /* outcome 1: the time is over */
  READ_LOCK,
  WRITE_LOCK,
  SEMAPHORE_WAIT,
  TIMED_SEMAPHORE_WAIT, /* outcome 1: the time is over */
  ONCE,
  JOIN,
  CHANGE, /* always possible; changes `object` and `other` */
  SIGNAL, /* as many outcomes as there are waiters */
  SLEEP,  /* waits on a condition variable; outcome 1: the time is over */
  ARRIVED, /* waits at a barrier */
  END_ALL, /* the program ends */
};

struct op {
  enum kind kind;
  int writes; /* 1: a plain write; 2: reads and perhaps writes */
  int size, timed;
  uintptr_t object, other;
  void *at; /* the place in the program */
};

/* Says what the running thread does next and returns when it may do it, with the outcome. */
int step(struct op op);

/* Something was written by an access with `writes` 2: only what changes a value lets waiting loops look again. */
void changed(void);

int self(void);
int thread_new(void *(*entry)(void *), void *argument);
void thread_end(void *result) __attribute__((noreturn));
void *thread_result(int thread);
void thread_joined(int thread);
void **thread_value(unsigned key);

/* Threads that wait on the condition variable: how many, and making one of them (or, -1, all) go on. */
int waiters(uintptr_t condition);
void wake(uintptr_t condition, int which);
void wake_barrier(uintptr_t barrier);

/* The state that the operations of `LOCK` and the like look at; in threads.c. */
int possible(int thread, const struct op *op);

/* The running execution ends here. */
void found(const char *what, long value) __attribute__((noreturn));

/* Memory of the program; in memory.c. */
int is_freed(uintptr_t address);

void *arena_of(int thread, size_t *size);
