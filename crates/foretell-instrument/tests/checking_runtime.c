/* A runtime for tests that checks instrumented code while it runs: each shadow remembers the value
 * of its expression, computed from its operands, and wherever a shadow is handed over together with
 * a value the two must agree. Aborts with a message where they do not, or where another part of the
 * contract (crate foretell-abi) is broken. Works with any number of threads. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { const char *file, *function; uint32_t line, column; } Site;
/* No limit: hooks are called for every access. */
static const void *const nowhere[3];
typedef struct {
  const void *cursor;
  uint32_t index, entered, shadow_mask, path;
  uint64_t callee, outside, returned_by;
  uint32_t arguments[12], results[4], local_shadows, pad;
} Slots;
typedef struct { const unsigned char *address; uint32_t shadow, offset, size; } Byte;

/* Expressions beyond the limit are concrete, which is always allowed. */
enum { SHADOWS = 1 << 20, BYTES = 1 << 16, DEPTH = 1 << 16 };

typedef struct {
  Slots slots;
  uint32_t count, depth;
  struct { uint64_t value; uint32_t width; } shadows[SHADOWS];
  Byte bytes[BYTES];
  const char *frames[DEPTH];
} Thread;

static __thread Thread *current;

static void fail(const char *what, const Site *site) {
  fprintf(stderr, "contract broken: %s", what);
  if (site) fprintf(stderr, " at %s:%u in %s", site->file, site->line, site->function);
  fprintf(stderr, "\n");
  __builtin_trap();
}

static Thread *thread(void) {
  if (!current) {
    current = calloc(1, sizeof *current);
    if (!current) fail("no memory", NULL);
    current->count = 1;
    current->slots.cursor = nowhere;
    current->slots.path = 1;
  }
  return current;
}

static uint64_t mask(uint64_t value, uint32_t width) {
  return width >= 64 ? value : value & ((UINT64_C(1) << width) - 1);
}

static int64_t sign(uint64_t value, uint32_t width) {
  return width >= 64 ? (int64_t)value : (int64_t)(value << (64 - width)) >> (64 - width);
}

static uint32_t fresh(uint64_t value, uint32_t width) {
  Thread *t = thread();
  if (t->count == SHADOWS) return 0;
  t->shadows[t->count].value = mask(value, width);
  t->shadows[t->count].width = width;
  return t->count++;
}

static void agree(uint32_t shadow, uint64_t value, uint32_t width, const char *what, const Site *site) {
  Thread *t = thread();
  if (mask(value, width) != value) fail("value wider than its type", site);
  if (!shadow) return;
  if (shadow >= t->count) fail("shadow of another thread", site);
  if (t->shadows[shadow].width == width && t->shadows[shadow].value == value) return;
  fprintf(stderr, "shadow %" PRIu64 " of %u bits, value %" PRIu64 " of %u bits\n", t->shadows[shadow].value,
          t->shadows[shadow].width, value, width);
  fail(what, site);
}

static void check_site(const Site *site) {
  if (!site || !site->file || !site->function) fail("no site", NULL);
}

static uint32_t bits(uint32_t info, const Site *site) {
  uint32_t size = info & 0xff;
  check_site(site);
  if (size != 1 && size != 2 && size != 4 && size != 8) fail("size of access", site);
  return 8 * size;
}

static uint64_t peek(const void *address, uint32_t size) {
  uint64_t value = 0;
  memcpy(&value, address, size);
  return value;
}

void __foretell_module(const uint32_t *module) {
  if (module[0] != 15) fail("version", NULL);
}

uint32_t __foretell_load(const void *a, uint32_t info, uint64_t v, uint32_t as, const Site *site, void *met) {
  uint32_t width = bits(info, site);
  if (!met) fail("load without what it has met", site);
  agree(0, v, width, "load", site);
  agree(as, (uint64_t)a, 64, "address of load", site);
  return info & (1 << 17) ? fresh(v, width) : 0;
}
void __foretell_store(const void *a, uint32_t info, uint64_t v, uint32_t s, uint32_t as, const Site *site, void *met) {
  if (!met) fail("store without what it has met", site);
  agree(s, v, bits(info, site), "store", site);
  agree(as, (uint64_t)a, 64, "address of store", site);
}
uint32_t __foretell_rmw(const void *a, uint32_t info, uint64_t o, uint64_t p, uint32_t s, uint32_t as, const Site *site) {
  uint32_t width = bits(info, site);
  agree(s, p, width, "operand of read-modify-write", site);
  agree(as, (uint64_t)a, 64, "address of read-modify-write", site);
  return fresh(o, width);
}
uint32_t __foretell_cmpxchg(const void *a, uint32_t info, uint64_t o, uint64_t e, uint64_t d, uint32_t ok, uint32_t es,
                            uint32_t ds, uint32_t as, const Site *site) {
  uint32_t width = bits(info, site);
  agree(es, e, width, "expected value", site);
  agree(ds, d, width, "desired value", site);
  agree(as, (uint64_t)a, 64, "address of compare-and-swap", site);
  if (ok != (o == e)) fail("success of compare-and-swap", site);
  return fresh(o, width);
}
void __foretell_fence(uint32_t order, const Site *site) {
  check_site(site);
  if (order < 1 || order > 5) fail("order of fence", site);
}
void __foretell_wide_atomic(const void *a, uint32_t begins, const Site *site) {
  check_site(site);
  if (begins > 1) fail("begin of wide atomic access", site);
}
void __foretell_read_range(const void *a, uint64_t n, uint32_t symbolic, const Site *site) { check_site(site); }
void __foretell_write_range(const void *a, uint64_t n, const Site *site) { check_site(site); }

/* Open addressing; an entry without shadow is free for the same address again. */
static Byte *byte(const void *address, int create) {
  Thread *t = thread();
  uint64_t hash = ((uint64_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> 48;
  for (uint32_t k = 0; k < 64; k++) {
    Byte *entry = &t->bytes[(hash + k) % BYTES];
    if (entry->address == address) return entry;
    if (!entry->address || (create && !entry->shadow)) {
      if (!create) return NULL;
      entry->address = address;
      return entry;
    }
  }
  return NULL;
}
static void set_byte(const void *address, uint32_t shadow, uint32_t offset, uint32_t size) {
  Byte *entry = byte(address, shadow != 0);
  if (!entry) return;
  thread()->slots.local_shadows += (shadow != 0) - (entry->shadow != 0);
  entry->shadow = shadow;
  entry->offset = offset;
  entry->size = size;
}
void __foretell_local_store(const unsigned char *a, uint64_t n, uint32_t s) {
  if (s) agree(s, peek(a, n), 8 * n, "store to local memory", NULL);
  for (uint64_t k = 0; k < n; k++) set_byte(a + k, s, k, n);
}
uint32_t __foretell_local_load(const unsigned char *a, uint32_t n, uint64_t v) {
  uint32_t whole = 0, any = 0;
  for (uint32_t k = 0; k < n; k++) {
    Byte *entry = byte(a + k, 0);
    uint32_t shadow = entry ? entry->shadow : 0;
    any |= shadow;
    if (k == 0) whole = shadow && entry->offset == 0 && entry->size == n ? shadow : 0;
    else if (!entry || shadow != whole || entry->offset != k) whole = 0;
  }
  agree(whole, v, 8 * n, "load from local memory", NULL);
  return whole ? whole : any ? fresh(v, 8 * n) : 0;
}
void __foretell_memcpy(const unsigned char *to, const unsigned char *from, uint64_t n, uint32_t flags, const Site *site) {
  check_site(site);
  if (!(flags & 1)) return;
  if (!(flags & 2)) {
    uint64_t k = 0;
    for (; (flags & 4) && k + 4 <= n; k += 4) __foretell_local_store(to + k, 4, fresh(peek(to + k, 4), 32));
    for (; k < n; k++) set_byte(to + k, 0, 0, 0);
    return;
  }
  Byte *copy = calloc(n + 1, sizeof *copy);
  if (!copy) fail("no memory", site);
  for (uint64_t k = 0; k < n; k++) {
    Byte *entry = byte(from + k, 0);
    if (entry) copy[k] = *entry;
  }
  for (uint64_t k = 0; k < n; k++) set_byte(to + k, copy[k].shadow, copy[k].offset, copy[k].size);
  free(copy);
}
void __foretell_memset(const unsigned char *to, uint32_t b, uint32_t s, uint64_t n, uint32_t flags, const Site *site) {
  check_site(site);
  agree(s, b & 0xff, 8, "byte of memset", site);
  if (flags & 1)
    for (uint64_t k = 0; k < n; k++) set_byte(to + k, s, 0, 1);
}

uint32_t __foretell_expr_binary(uint32_t op, uint32_t w, uint32_t a, uint64_t x, uint32_t b, uint64_t y) {
  if (w < 1 || w > 64) fail("width of operator", NULL);
  agree(a, x, w, "left operand", NULL);
  agree(b, y, w, "right operand", NULL);
  if (!(a | b)) return 0;
  int64_t sx = sign(x, w), sy = sign(y, w);
  switch (op) {
  case 0: return fresh(x + y, w);
  case 1: return fresh(x - y, w);
  case 2: return fresh(x * y, w);
  case 3: return y ? fresh(x / y, w) : 0;
  case 4: return sy ? fresh(sy == -1 ? -(uint64_t)sx : (uint64_t)(sx / sy), w) : 0;
  case 5: return y ? fresh(x % y, w) : 0;
  case 6: return sy ? fresh(sy == -1 ? 0 : (uint64_t)(sx % sy), w) : 0;
  case 7: return fresh(x & y, w);
  case 8: return fresh(x | y, w);
  case 9: return fresh(x ^ y, w);
  case 10: return y < w ? fresh(x << y, w) : 0;
  case 11: return y < w ? fresh(x >> y, w) : 0;
  case 12: return y < w ? fresh((uint64_t)(sx >> y), w) : 0;
  case 13: return fresh(x == y, 1);
  case 14: return fresh(x != y, 1);
  case 15: return fresh(x < y, 1);
  case 16: return fresh(x <= y, 1);
  case 17: return fresh(x > y, 1);
  case 18: return fresh(x >= y, 1);
  case 19: return fresh(sx < sy, 1);
  case 20: return fresh(sx <= sy, 1);
  case 21: return fresh(sx > sy, 1);
  case 22: return fresh(sx >= sy, 1);
  default: fail("operator", NULL); return 0;
  }
}
uint32_t __foretell_expr_cast(uint32_t op, uint32_t from, uint32_t to, uint32_t s) {
  if (op > 2 || (op ? from >= to : from <= to)) fail("widths of conversion", NULL);
  if (!s) return 0;
  Thread *t = thread();
  if (s >= t->count || t->shadows[s].width != from) fail("operand of conversion", NULL);
  uint64_t value = t->shadows[s].value;
  return fresh(op == 2 ? (uint64_t)sign(value, from) : value, to);
}
uint32_t __foretell_expr_address(uint32_t op, uint32_t width, uint32_t index, uint32_t scale, uint64_t base) {
  if (op < 1 || op > 2) fail("extension of an index", NULL);
  if (!index) return 0;
  Thread *t = thread();
  if (index >= t->count || t->shadows[index].width != width) fail("index of an address", NULL);
  uint64_t value = t->shadows[index].value;
  return fresh(base + (op == 2 ? (uint64_t)sign(value, width) : value) * scale, 64);
}
uint32_t __foretell_expr_select(uint32_t w, uint32_t c, uint32_t cv, uint32_t a, uint64_t x, uint32_t b, uint64_t y) {
  agree(c, cv, 1, "condition", NULL);
  agree(a, x, w, "left choice", NULL);
  agree(b, y, w, "right choice", NULL);
  return a | b | c ? fresh(cv ? x : y, w) : 0;
}
void __foretell_path(uint32_t outcome, const Site *site) {
  if (outcome > 1) fail("path with an odd outcome", site);
}

void __foretell_path_switch(
    uint64_t value, const uint64_t *cases, uint64_t count, const Site *site) {
  (void)value, (void)cases, (void)count, (void)site;
}

void __foretell_branch(uint32_t s, uint32_t outcome, const Site *site) {
  check_site(site);
  if (!s) fail("branch without shadow", site);
  agree(s, outcome, 1, "branch", site);
}
void __foretell_switch(uint32_t s, uint32_t w, uint64_t v, const uint64_t *cases, uint64_t n, const Site *site) {
  check_site(site);
  if (!s) fail("switch without shadow", site);
  agree(s, v, w, "switch", site);
}
void __foretell_assert(uint32_t s, uint32_t outcome, uint32_t wanted, const Site *site) {
  check_site(site);
  agree(s, outcome, 1, "assertion", site);
  if (wanted > 1) fail("wanted outcome", site);
}
void __foretell_pin(uint32_t s, uint32_t w, uint64_t v, uint32_t reason, const Site *site) {
  check_site(site);
  agree(s, v, w, "pin", site);
  if (reason > 6) fail("reason of pin", site);
}

static void leave_inner(const char *frame) {
  Thread *t = thread();
  while (t->depth && t->frames[t->depth - 1] < frame) t->depth--;
}
Slots *__foretell_enter(const Site *site, const char *frame) {
  check_site(site);
  leave_inner(frame);
  Thread *t = thread();
  if (t->depth == DEPTH) fail("calls too deep for this runtime", site);
  t->frames[t->depth++] = frame;
  return &t->slots;
}
Slots *__foretell_enter_library(const char *frame, const char *caller) {
  leave_inner(frame);
  Thread *t = thread();
  if (!caller || t->depth == DEPTH) fail("no caller, or calls too deep for this runtime", NULL);
  t->frames[t->depth++] = frame;
  return &t->slots;
}
void __foretell_describe(const char *address, const void *what) {
  if (!address || !what) fail("nothing is described", NULL);
}
void __foretell_exit(const char *frame) {
  leave_inner(frame);
  Thread *t = thread();
  if (!t->depth || t->frames[t->depth - 1] != frame) fail("exit without entry", NULL);
  t->depth--;
}
void __foretell_unwind(const char *frame) {
  leave_inner(frame);
  Thread *t = thread();
  if (!t->depth || t->frames[t->depth - 1] != frame) fail("unwinding to a function that was not entered", NULL);
}
void __foretell_await_enter(void) {}
void __foretell_await_round(const Site *site) { check_site(site); }
void __foretell_await_test(unsigned index, unsigned leaves, const Site *site) { check_site(site); }
// Values that differ from run to run stay what they are here; what the library keeps is not looked at.
unsigned long __foretell_value(unsigned source, unsigned long given, const Site *site) { check_site(site); return given; }
void __foretell_unseen(unsigned what, const char *text, const Site *site) { check_site(site); }
void __foretell_foreign(const void *function, const char *name, const void *object, uint32_t given, const Site *site) { check_site(site); }
uint32_t __foretell_summary_of(const void *function) { return UINT32_MAX; }
void __foretell_library(unsigned number, unsigned flags, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h,
  uint64_t i, uint64_t j, uint64_t result, const Site *site) { check_site(site); }
void __foretell_state(const void *stream, const char *name, unsigned effect, const Site *site) { check_site(site); }
void __foretell_region_begin(const char *name, const Site *site) { check_site(site); }
void __foretell_region_end(const Site *site) { check_site(site); }
