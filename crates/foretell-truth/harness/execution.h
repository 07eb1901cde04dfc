/* An execution: what core.c schedules and copy.c copies. */
#pragma once
#include "harness.h"

#include <ucontext.h>

enum { STACK = 256 << 10, TLS = 1024, VALUES = 16, SEEN = 32 };

struct seen {
  void *at;
  uint64_t local, version;
};

struct thread {
  ucontext_t context;
  struct op next;
  int outcome; /* of `next`, when it is chosen */
  int exists, ended, joined;
  char *stack_top;
  void *(*entry)(void *);
  void *argument, *result;
  void *values[VALUES];
  char tls[TLS];
  struct seen seen[SEEN];
  unsigned seen_count;
  int spins;          /* it waits in a loop */
  uint64_t spins_at;  /* until the version is another */
  unsigned events;
  uint64_t path, trace; /* hashes of what it did */
  uint64_t priority;
};

extern struct thread threads[MOST_THREADS];
extern int count, current;

/* Where variables and thread-local variables are; before everything else. */
void find_memory(void);

/* Thread-local variables are kept with the thread while another one runs. */
void save_tls(struct thread *thread, int fresh);
void restore_tls(struct thread *thread);
int is_thread_local(uintptr_t address);
uint64_t hash_of_tls(uint64_t hash);
uint64_t mix(uint64_t a, uint64_t b);

/* Copies the execution to memory that is large enough, or (`back`) makes the copy the execution again. */
char *copy_execution(char *copy, int back);
