/* Memory of the program. Each thread has an arena of its own, so that what one allocates does not depend on
 * the schedule; nothing is used again, so that an access to freed memory is seen. */
#define _GNU_SOURCE
#include "harness.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { ARENA = 1 << 20, UNIT = 16 };
struct header {
  size_t size, freed;
};

static char *arenas[MOST_THREADS];
static size_t used[MOST_THREADS];

void *malloc(size_t size) {
  int me = self();
  if (arenas[me] == NULL) {
    /* At an address that is the same whenever it is first needed. */
    void *wanted = (void *)(0x600000000000 + (uintptr_t)me * 2 * ARENA);
    arenas[me] = mmap(wanted, ARENA, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  size_t whole = (size + sizeof(struct header) + UNIT - 1) / UNIT * UNIT;
  if (size > ARENA || used[me] + whole > ARENA) return errno = ENOMEM, NULL;
  struct header *header = (struct header *)(arenas[me] + used[me]);
  used[me] += whole;
  *header = (struct header){size, 0};
  return memset(header + 1, 0, size);
}

void *calloc(size_t n, size_t size) { return malloc(n * size); }

void *realloc(void *old, size_t size) {
  void *new = malloc(size);
  if (old == NULL || new == NULL) return new;
  size_t kept = ((struct header *)old)[-1].size;
  memcpy(new, old, kept < size ? kept : size);
  return new;
}

int posix_memalign(void **to, size_t alignment, size_t size) {
  char *block = malloc(size + alignment);
  if (block == NULL) return ENOMEM;
  *to = (void *)(((uintptr_t)block + alignment - 1) / alignment * alignment);
  return 0;
}

void *aligned_alloc(size_t alignment, size_t size) {
  void *block = NULL;
  posix_memalign(&block, alignment, size);
  return block;
}

void free(void *block) {
  if (block == NULL) return;
  struct header *header = (struct header *)block - 1;
  /* An access of the whole block, which must not be free. */
  if (header->size > 0)
    step((struct op){.kind = ACCESS, .writes = 1, .size = (int)header->size, .object = (uintptr_t)block, .at = __builtin_return_address(0)});
  header->freed = 1;
}

int is_freed(uintptr_t address) {
  uintptr_t number = (address - 0x600000000000) / (2 * ARENA);
  if (address < 0x600000000000 || number >= MOST_THREADS || arenas[number] == NULL) return 0;
  for (char *at = arenas[number]; at < arenas[number] + used[number];) {
    struct header *header = (struct header *)at;
    size_t whole = (header->size + sizeof *header + UNIT - 1) / UNIT * UNIT;
    if (address < (uintptr_t)at + whole) return header->freed != 0;
    at += whole;
  }
  return 0;
}

void *arena_of(int thread, size_t *size) {
  *size = used[thread];
  return arenas[thread];
}
