/* Copies of an execution: the variables of the program and of these files, the stacks of its threads, its heap,
 * and thread-local variables. What the C library keeps for itself is not copied: only what is printed depends
 * on it. */
#define _GNU_SOURCE
#include "execution.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

/* Thread-local variables: those of the program and of the C++ library are kept with the thread. */
static struct { char *now; const char *image; size_t filled, size; } tls[8];
static int tls_count;

/* The variables of the program and of these files. */
static struct { char *start; size_t size; } regions[4];
static int regions_count;

static int find_regions(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  for (int i = 0; i < info->dlpi_phnum && regions_count < 4; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    if (header->p_type != PT_LOAD || !(header->p_flags & PF_W)) continue;
    regions[regions_count].start = (char *)(info->dlpi_addr + header->p_vaddr);
    regions[regions_count++].size = header->p_memsz;
  }
  return 1; /* the first is the program itself */
}

static int find_tls(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  if (info->dlpi_tls_data == NULL || strstr(info->dlpi_name, "/libc.") ||
      strstr(info->dlpi_name, "/ld-"))
    return 0;
  for (int i = 0; i < info->dlpi_phnum && tls_count < 8; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    if (header->p_type != PT_TLS) continue;
    tls[tls_count].now = info->dlpi_tls_data;
    tls[tls_count].image = (const char *)(info->dlpi_addr + header->p_vaddr);
    tls[tls_count].filled = header->p_filesz;
    tls[tls_count++].size = header->p_memsz;
  }
  return 0;
}

void save_tls(struct thread *thread, int fresh) {
  char *to = thread->tls;
  for (int i = 0; i < tls_count; i++) {
    if (to + tls[i].size > thread->tls + TLS) abort();
    if (fresh) {
      memset(to, 0, tls[i].size);
      memcpy(to, tls[i].image, tls[i].filled);
    } else {
      memcpy(to, tls[i].now, tls[i].size);
    }
    to += tls[i].size;
  }
}

void restore_tls(struct thread *thread) {
  const char *from = thread->tls;
  for (int i = 0; i < tls_count; from += tls[i++].size) memcpy(tls[i].now, from, tls[i].size);
}

void find_memory(void) {
  dl_iterate_phdr(find_tls, NULL);
  dl_iterate_phdr(find_regions, NULL);
}

int is_thread_local(uintptr_t address) {
  for (int i = 0; i < tls_count; i++)
    if (address - (uintptr_t)tls[i].now < tls[i].size) return 1;
  return 0;
}

uint64_t hash_of_tls(uint64_t hash) {
  for (int i = 0; i < tls_count; i++)
    for (size_t j = 0; j + 8 <= tls[i].size; j += 8) {
      uint64_t word;
      memcpy(&word, tls[i].now + j, 8);
      hash = mix(hash, word);
    }
  return hash;
}

/* Copies an execution, or (`back`) makes it the running one again. */
static char *copy_part(char *copy, void *part, size_t size, int back) {
  if (back) memcpy(part, copy, size);
  else memcpy(copy, part, size);
  return copy + (size + 15) / 16 * 16;
}

char *copy_execution(char *copy, int back) {
  for (int i = 0; i < regions_count; i++)
    copy = copy_part(copy, regions[i].start, regions[i].size, back);
  for (int i = 0; i < count; i++) {
    struct thread *thread = &threads[i];
    if (thread->ended || !thread->exists) continue;
    char *low = (char *)thread->context.uc_mcontext.gregs[REG_RSP] - 128;
    copy = copy_part(copy, low, (size_t)(thread->stack_top - low), back);
  }
  for (int i = 0; i < MOST_THREADS; i++) {
    size_t size = 0;
    void *arena = arena_of(i, &size);
    if (size > 0) copy = copy_part(copy, arena, size, back);
  }
  return copy;
}
