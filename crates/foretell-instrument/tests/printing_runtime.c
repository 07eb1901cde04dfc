/* A runtime for tests: prints every hook's call to the file in FORETELL_PRINT, one a line, with
 * expressions written out, e.g. `store counter 4 = 1 (add r1 1) line 7`. One thread only. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { const char *file, *function; uint32_t line, column; } Site;
typedef struct { const char *address; uint64_t size; const char *name, *file; uint32_t line, pad; const char *layout; } Global;
typedef struct { uint32_t abi, flags; const char *name; const Global *globals; uint64_t count; } Module;
/* No limit: hooks are called for every access. */
static const void *const nowhere[3];
typedef struct {
  const void *cursor;
  uint32_t index, entered, shadow_mask, path;
  uint64_t callee, outside, returned_by;
  uint32_t arguments[12], results[4], local_shadows, pad;
} Slots;

enum { EXPRESSIONS = 1 << 16, LOCALS = 1 << 16, MODULES = 64 };
static char *expressions[EXPRESSIONS];
static uint32_t expression_count = 1, reads;
static const Module *modules[MODULES];
static unsigned module_count, depth;
static Slots slots = {.cursor = nowhere, .path = 1};
static struct { const char *address; uint32_t shadow, byte; } locals[LOCALS];
static uint32_t local_count;

static FILE *out(void) {
  static FILE *file;
  if (!file) {
    const char *path = getenv("FORETELL_PRINT");
    file = path ? fopen(path, "w") : stderr;
    if (!file) abort();
    setvbuf(file, NULL, _IOLBF, 0);
  }
  return file;
}

static uint32_t intern(const char *text) {
  if (expression_count == EXPRESSIONS) abort();
  expressions[expression_count] = strdup(text);
  return expression_count++;
}

static const char *show(uint32_t shadow, uint64_t value) {
  static char buffers[8][32];
  static unsigned next;
  if (shadow) return expressions[shadow];
  char *buffer = buffers[next++ % 8];
  snprintf(buffer, 32, "%llu", (unsigned long long)value);
  return buffer;
}

static const char *where(const void *address) {
  static char buffer[256];
  for (unsigned m = 0; m < module_count; m++)
    for (uint64_t g = 0; g < modules[m]->count; g++) {
      const Global *global = &modules[m]->globals[g];
      uint64_t offset = (uint64_t)((const char *)address - global->address);
      if (offset < global->size) {
        if (!offset) return global->name;
        snprintf(buffer, sizeof buffer, "%s+%llu", global->name, (unsigned long long)offset);
        return buffer;
      }
    }
  return "?";
}

static uint32_t fresh_read(void) {
  char text[32];
  snprintf(text, sizeof text, "r%u", ++reads);
  return intern(text);
}

static const char *order(uint32_t info) {
  static const char *names[] = {"", " relaxed", " acquire", " release", " acq_rel", " seq_cst"};
  return names[(info >> 8) & 0xff];
}

static const char *address_text(uint32_t shadow) {
  static char buffer[4096];
  if (!shadow) return "";
  snprintf(buffer, sizeof buffer, " at %s", expressions[shadow]);
  return buffer;
}

static uint64_t mask(uint64_t value, uint32_t width) {
  return width >= 64 ? value : value & ((1ull << width) - 1);
}

void __foretell_module(const Module *module) {
  if (module->abi != 15 || module_count == MODULES) abort();
  modules[module_count++] = module;
  fprintf(out(), "module %s\n", module->flags & 1 ? "symbolic" : "concrete");
}

uint32_t __foretell_load(const void *a, uint32_t info, uint64_t value, uint32_t address, const Site *site) {
  uint32_t shadow = info & (1 << 17) ? fresh_read() : 0;
  fprintf(out(), "load %s %u = %llu%s%s%s%s%s line %u\n", where(a), info & 0xff, (unsigned long long)value,
          shadow ? " " : "", shadow ? expressions[shadow] : "", order(info),
          info & (1 << 16) ? " volatile" : "", address_text(address), site->line);
  return shadow;
}

void __foretell_store(const void *a, uint32_t info, uint64_t value, uint32_t shadow, uint32_t address, const Site *site) {
  fprintf(out(), "store %s %u = %llu%s%s%s%s%s line %u\n", where(a), info & 0xff, (unsigned long long)value,
          shadow ? " " : "", shadow ? expressions[shadow] : "", order(info),
          info & (1 << 16) ? " volatile" : "", address_text(address), site->line);
}

uint32_t __foretell_rmw(const void *a, uint32_t info, uint64_t old, uint64_t operand, uint32_t shadow,
                        uint32_t address, const Site *site) {
  static const char *kinds[] = {"other", "exchange", "add", "sub", "and", "nand", "or", "xor", "max", "min", "umax", "umin"};
  uint32_t read = info & (1 << 17) ? fresh_read() : 0;
  fprintf(out(), "rmw %s %u %s old %llu %s operand %s%s%s line %u\n", where(a), info & 0xff, kinds[info >> 24],
          (unsigned long long)old, read ? expressions[read] : "-", show(shadow, operand), order(info),
          address_text(address), site->line);
  return read;
}

uint32_t __foretell_cmpxchg(const void *a, uint32_t info, uint64_t old, uint64_t expected, uint64_t desired,
                            uint32_t success, uint32_t es, uint32_t ds, uint32_t address, const Site *site) {
  uint32_t read = info & (1 << 17) ? fresh_read() : 0;
  fprintf(out(), "cmpxchg %s %u old %llu %s expected %s desired %s %s%s line %u\n", where(a), info & 0xff,
          (unsigned long long)old, read ? expressions[read] : "-", show(es, expected), show(ds, desired),
          success ? "succeeded" : "failed", order(info), site->line);
  (void)address;
  return read;
}

void __foretell_fence(uint32_t o, const Site *site) { fprintf(out(), "fence%s line %u\n", order(o << 8), site->line); }

void __foretell_wide_atomic(const void *a, uint32_t begins, const Site *site) {
  fprintf(out(), "wide_atomic %s %s line %u\n", where(a), begins ? "begins" : "ends", site->line);
}

void __foretell_read_range(const void *a, uint64_t size, uint32_t symbolic, const Site *site) {
  fprintf(out(), "read_range %s %llu%s line %u\n", where(a), (unsigned long long)size, symbolic ? " pinned" : "", site->line);
}

void __foretell_write_range(const void *a, uint64_t size, const Site *site) {
  fprintf(out(), "write_range %s %llu line %u\n", where(a), (unsigned long long)size, site->line);
}

static uint32_t *local_entry(const char *address, int create) {
  for (uint32_t k = 0; k < local_count; k++)
    if (locals[k].address == address) return &locals[k].shadow;
  if (!create) return NULL;
  if (local_count == LOCALS) abort();
  locals[local_count].address = address;
  locals[local_count].shadow = 0;
  return &locals[local_count++].shadow;
}

/* Keeps the shadow at the first byte only: enough for values that are read as they were written. */
void __foretell_local_store(const char *a, uint64_t size, uint32_t shadow) {
  for (uint64_t k = 0; k < size; k++) {
    uint32_t *entry = local_entry(a + k, k == 0 && shadow);
    if (!entry) continue;
    slots.local_shadows += (k == 0 && shadow ? 1 : 0) - (*entry ? 1 : 0);
    *entry = k == 0 ? shadow : 0;
  }
}

uint32_t __foretell_local_load(const char *a, uint32_t size, uint64_t value) {
  (void)size, (void)value;
  uint32_t *entry = local_entry(a, 0);
  return entry ? *entry : 0;
}

void __foretell_memcpy(const char *to, const char *from, uint64_t length, uint32_t flags, const Site *site) {
  char target[256];
  snprintf(target, sizeof target, "%s", flags & 1 ? "local" : where(to));
  fprintf(out(), "memcpy %s %s %llu line %u\n", target, flags & 2 ? "local" : where(from), (unsigned long long)length, site->line);
  if (!(flags & 1) || !(flags & 4)) return;
  for (uint64_t k = 0; k < length; k++) {
    if (flags & 2) {
      uint32_t *entry = local_entry(from + k, 0);
      __foretell_local_store(to + k, 1, entry ? *entry : 0);
    } else if (k % 4 == 0) {
      __foretell_local_store(to + k, 1, fresh_read());
    }
  }
}

void __foretell_memset(const char *to, uint32_t byte, uint32_t shadow, uint64_t length, uint32_t flags, const Site *site) {
  fprintf(out(), "memset %s %s %llu line %u\n", flags & 1 ? "local" : where(to), show(shadow, byte & 0xff),
          (unsigned long long)length, site->line);
  if (flags & 1) __foretell_local_store(to, length, 0);
}

uint32_t __foretell_expr_binary(uint32_t op, uint32_t width, uint32_t a, uint64_t av, uint32_t b, uint64_t bv) {
  static const char *names[] = {"add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "and", "or", "xor", "shl", "lshr",
                                "ashr", "eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge"};
  char text[4096];
  if (!(a | b)) return 0;
  if (op > 22 || width < 1 || width > 64 || mask(av, width) != av || mask(bv, width) != bv) abort();
  snprintf(text, sizeof text, "(%s %s %s)", names[op], show(a, av), show(b, bv));
  return intern(text);
}

uint32_t __foretell_expr_cast(uint32_t op, uint32_t from, uint32_t to, uint32_t shadow) {
  static const char *names[] = {"trunc", "zext", "sext"};
  char text[4096];
  if (!shadow) return 0;
  if (op > 2 || (op ? from >= to : from <= to)) abort();
  snprintf(text, sizeof text, "(%s%u %s)", names[op], to, expressions[shadow]);
  return intern(text);
}

uint32_t __foretell_expr_address(uint32_t op, uint32_t width, uint32_t index, uint32_t scale, uint64_t base) {
  char text[4096];
  if (!index) return 0;
  if (op < 1 || op > 2 || width < 1 || width > 64) abort();
  snprintf(text, sizeof text, "(address %s %u * %s%u %s)", where((const void *)base), scale, op == 1 ? "zext" : "sext",
           width, expressions[index]);
  return intern(text);
}

uint32_t __foretell_expr_select(uint32_t width, uint32_t c, uint32_t cv, uint32_t a, uint64_t av, uint32_t b, uint64_t bv) {
  char text[4096];
  if (!(a | b | c)) return 0;
  if (width < 1 || width > 64) abort();
  snprintf(text, sizeof text, "(ite %s %s %s)", show(c, cv), show(a, av), show(b, bv));
  return intern(text);
}

void __foretell_path(uint32_t outcome, const Site *site) {
  fprintf(out(), "path %u line %u\n", outcome, site->line);
}

void __foretell_path_switch(
    uint64_t value, const uint64_t *cases, uint64_t count, const Site *site) {
  fprintf(out(), "path_switch %llu of %llu line %u\n", (unsigned long long)value,
          (unsigned long long)count, site->line);
  (void)cases;
}

void __foretell_branch(uint32_t shadow, uint32_t outcome, const Site *site) {
  if (!shadow) abort();
  fprintf(out(), "branch %s %u line %u\n", expressions[shadow], outcome, site->line);
}

void __foretell_switch(uint32_t shadow, uint32_t width, uint64_t value, const uint64_t *cases, uint64_t count, const Site *site) {
  if (!shadow) abort();
  fprintf(out(), "switch %s %llu of", expressions[shadow], (unsigned long long)value);
  for (uint64_t k = 0; k < count; k++) fprintf(out(), " %llu", (unsigned long long)cases[k]);
  fprintf(out(), " line %u\n", site->line);
  (void)width;
}

void __foretell_assert(uint32_t shadow, uint32_t outcome, uint32_t wanted, const Site *site) {
  fprintf(out(), "assert %s is %u line %u\n", show(shadow, outcome), wanted, site->line);
}

void __foretell_pin(uint32_t shadow, uint32_t width, uint64_t value, uint32_t reason, const Site *site) {
  static const char *reasons[] = {"other", "float", "wide", "external", "address", "argument", "status"};
  if (!shadow) return;
  fprintf(out(), "pin %s %llu %s line %u\n", expressions[shadow], (unsigned long long)value, reasons[reason], site->line);
  (void)width;
}

static const char *frames[1024];
Slots *__foretell_enter(const Site *site, const char *frame) {
  while (depth && frames[depth - 1] < frame) depth--;
  if (depth == 1024) abort();
  frames[depth++] = frame;
  fprintf(out(), "enter %s depth %u line %u\n", site->function, depth, site->line);
  return &slots;
}
Slots *__foretell_enter_library(const char *frame, const char *caller) {
  while (depth && frames[depth - 1] < frame) depth--;
  if (depth == 1024 || !caller) abort();
  frames[depth++] = frame;
  fprintf(out(), "library depth %u\n", depth);
  return &slots;
}
typedef struct { const char *name, *function, *layout; unsigned long long size; } Described;
void __foretell_describe(const char *address, const Described *what) {
  if (!address) abort();
  fprintf(out(), "describe %s in '%s' as '%s', %llu bytes\n", what->name, what->function, what->layout, what->size);
}
void __foretell_exit(const char *frame) {
  while (depth && frames[depth - 1] < frame) depth--;
  if (!depth || frames[depth - 1] != frame) abort();
  depth--;
  fprintf(out(), "exit\n");
}
void __foretell_unwind(const char *frame) {
  while (depth && frames[depth - 1] < frame) depth--;
  fprintf(out(), "unwind depth %u\n", depth);
}
void __foretell_await_enter(void) {}
void __foretell_await_round(const Site *site) { fprintf(out(), "await line %u\n", site->line); }
void __foretell_await_test(unsigned index, unsigned leaves, const Site *site) { fprintf(out(), "await-test %u line %u\n", leaves, site->line); }
// Values that differ from run to run stay what they are here; what the library keeps is not looked at.
unsigned long __foretell_value(unsigned source, unsigned long given, const Site *site) { return given; }
void __foretell_unseen(unsigned what, const char *text, const Site *site) { }
void __foretell_foreign(const void *function, const char *name, const void *object, uint32_t given, const Site *site) { }
uint32_t __foretell_summary_of(const void *function) { return UINT32_MAX; }
void __foretell_library(unsigned number, unsigned flags, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h,
  uint64_t i, uint64_t j, uint64_t result, const Site *site) {
  fprintf(out(), "library %s %s %s line %u\n", flags & 1 ? "after" : "before", where((const void *)a), flags & 2 ? "symbolic" : "concrete", site->line);
}
void __foretell_state(const void *stream, const char *name, unsigned effect, const Site *site) { }
void __foretell_region_begin(const char *name, const Site *site) { fprintf(out(), "begin %s line %u\n", name, site->line); }
void __foretell_region_end(const Site *site) { fprintf(out(), "end line %u\n", site->line); }
