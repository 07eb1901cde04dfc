/* A runtime for tests that gives every value it can a shadow and otherwise keeps still: programs
 * must behave as without it, in any number of threads. Local memory is taken to be all symbolic
 * after its first symbolic store. It checks the parts of the contract that can be checked without
 * looking at expressions, and aborts where one is broken. */
#include <stdint.h>
#include <stdlib.h>

typedef struct { const char *file, *function; uint32_t line, column; } Site;
typedef struct {
  uint64_t callee, returned_by;
  uint32_t arguments[12], results[4], local_shadows, pad;
} Slots;

static __thread Slots slots;
static __thread const char *frames[4096];
static __thread unsigned depth;

static void check(int holds) {
  if (!holds) __builtin_trap();
}
static void check_site(const Site *site) { check(site && site->file && site->function); }
static void check_size(uint32_t info) {
  uint32_t size = info & 0xff;
  check(size == 1 || size == 2 || size == 4 || size == 8);
}

void __foretell_module(const uint32_t *module) { check(module[0] == 1); }
uint32_t __foretell_load(const void *a, uint32_t info, uint64_t v, uint32_t s, const Site *site) {
  check_site(site), check_size(info);
  return info & (1 << 17) ? 1 : 0;
}
void __foretell_store(const void *a, uint32_t info, uint64_t v, uint32_t s, uint32_t as, const Site *site) {
  check_site(site), check_size(info);
}
uint32_t __foretell_rmw(const void *a, uint32_t info, uint64_t o, uint64_t p, uint32_t s, uint32_t as, const Site *site) {
  check_site(site), check_size(info);
  return 1;
}
uint32_t __foretell_cmpxchg(const void *a, uint32_t info, uint64_t o, uint64_t e, uint64_t d, uint32_t ok, uint32_t es,
                            uint32_t ds, uint32_t as, const Site *site) {
  check_site(site), check_size(info), check(!ok || o == e);
  return 1;
}
void __foretell_fence(uint32_t order, const Site *site) { check_site(site), check(order >= 1 && order <= 5); }
void __foretell_read_range(const void *a, uint64_t n, uint32_t symbolic, const Site *site) { check_site(site); }
void __foretell_write_range(const void *a, uint64_t n, const Site *site) { check_site(site); }
void __foretell_memcpy(const void *to, const void *from, uint64_t n, uint32_t flags, const Site *site) { check_site(site); }
void __foretell_memset(const void *to, uint32_t b, uint32_t s, uint64_t n, uint32_t flags, const Site *site) { check_site(site); }
uint32_t __foretell_local_load(const void *a, uint32_t n, uint64_t v) { return slots.local_shadows; }
void __foretell_local_store(const void *a, uint64_t n, uint32_t s) { slots.local_shadows |= s; }
uint32_t __foretell_expr_binary(uint32_t op, uint32_t width, uint32_t a, uint64_t av, uint32_t b, uint64_t bv) {
  check(op <= 22 && width >= 1 && width <= 64);
  check(width == 64 || (av >> width == 0 && bv >> width == 0));
  return a | b;
}
uint32_t __foretell_expr_cast(uint32_t op, uint32_t from, uint32_t to, uint32_t s) {
  check(op <= 2 && (op ? from < to : from > to));
  return s;
}
uint32_t __foretell_expr_select(uint32_t width, uint32_t c, uint32_t cv, uint32_t a, uint64_t av, uint32_t b, uint64_t bv) {
  check(cv <= 1);
  return a | b | c;
}
void __foretell_branch(uint32_t s, uint32_t outcome, const Site *site) { check_site(site), check(s && outcome <= 1); }
void __foretell_switch(uint32_t s, uint32_t width, uint64_t v, const uint64_t *c, uint64_t n, const Site *site) {
  check_site(site), check(s);
}
void __foretell_assert(uint32_t s, uint32_t outcome, uint32_t wanted, const Site *site) {
  check_site(site), check(outcome <= 1 && wanted <= 1);
}
void __foretell_pin(uint32_t s, uint32_t width, uint64_t v, uint32_t reason, const Site *site) {
  check_site(site), check(reason <= 5);
}
Slots *__foretell_enter(const Site *site, const char *frame) {
  check_site(site);
  while (depth && frames[depth - 1] < frame) depth--;
  check(depth < 4096);
  frames[depth++] = frame;
  return &slots;
}
void __foretell_exit(const char *frame) {
  while (depth && frames[depth - 1] < frame) depth--;
  check(depth && frames[depth - 1] == frame);
  depth--;
}
void __foretell_unwind(const char *frame) {
  while (depth && frames[depth - 1] < frame) depth--;
  check(depth && frames[depth - 1] == frame);
}
void __foretell_region_begin(const char *name, const Site *site) { check_site(site); }
void __foretell_region_end(const Site *site) { check_site(site); }
