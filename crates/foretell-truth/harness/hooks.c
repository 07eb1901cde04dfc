/* What clang calls with -fsanitize=thread: a step before each access of memory. */
#include "harness.h"

#include <string.h>

#define HERE __builtin_return_address(0)
#define ACCESS_OF(size_, writes_, address_) \
  step((struct op){.kind = ACCESS, .writes = writes_, .size = size_, .object = (uintptr_t)(address_), .at = HERE})

#define PLAIN(prefix, size)                                                                  \
  void __tsan_##prefix##read##size(void *p) { ACCESS_OF(size, 0, p); }                       \
  void __tsan_##prefix##write##size(void *p) { ACCESS_OF(size, 1, p); }                      \
  void __tsan_##prefix##read_write##size(void *p) { ACCESS_OF(size, 2, p), changed(); }
PLAIN(, 1)
PLAIN(, 2)
PLAIN(, 4)
PLAIN(, 8)
PLAIN(, 16)
PLAIN(unaligned_, 2)
PLAIN(unaligned_, 4)
PLAIN(unaligned_, 8)
PLAIN(unaligned_, 16)

void __tsan_init(void) {}
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void) {}
void __tsan_vptr_read(void **p) { ACCESS_OF(8, 0, p); }
void __tsan_vptr_update(void **p, void *value) { (void)value, ACCESS_OF(8, 1, p); }
void __tsan_read_range(void *p, size_t size) { ACCESS_OF((int)size, 0, p); }
void __tsan_write_range(void *p, size_t size) { ACCESS_OF((int)size, 1, p); }

void *__tsan_memcpy(void *to, const void *from, size_t size) {
  if (size) ACCESS_OF((int)size, 0, from), ACCESS_OF((int)size, 1, to);
  return memmove(to, from, size);
}
void *__tsan_memmove(void *to, const void *from, size_t size) {
  if (size) ACCESS_OF((int)size, 0, from), ACCESS_OF((int)size, 1, to);
  return memmove(to, from, size);
}
void *__tsan_memset(void *to, int byte, size_t size) {
  if (size) ACCESS_OF((int)size, 1, to);
  return memset(to, byte, size);
}

void __tsan_atomic_thread_fence(int order) { (void)order; }
void __tsan_atomic_signal_fence(int order) { (void)order; }

#define FETCH(bits, name, expression)                                                        \
  uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *p, uint##bits##_t v, int o) { \
    (void)o;                                                                                 \
    ACCESS_OF(bits / 8, 2, p);                                                               \
    uint##bits##_t old = *p, new = (uint##bits##_t)(expression);                             \
    *p = new;                                                                                \
    if (new != old) changed();                                                               \
    return old;                                                                              \
  }
#define ATOMIC(bits)                                                                         \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *p, int o) {       \
    (void)o;                                                                                 \
    ACCESS_OF(bits / 8, 0, p);                                                               \
    return *p;                                                                               \
  }                                                                                          \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t *p, uint##bits##_t v, int o) {    \
    (void)o;                                                                                 \
    ACCESS_OF(bits / 8, 1, p);                                                               \
    *p = v;                                                                                  \
  }                                                                                          \
  FETCH(bits, exchange, v)                                                                   \
  FETCH(bits, fetch_add, old + v)                                                            \
  FETCH(bits, fetch_sub, old - v)                                                            \
  FETCH(bits, fetch_and, old & v)                                                            \
  FETCH(bits, fetch_or, old | v)                                                             \
  FETCH(bits, fetch_xor, old ^ v)                                                            \
  FETCH(bits, fetch_nand, ~(old & v))                                                        \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile uint##bits##_t *p,              \
                                                    uint##bits##_t *expected, uint##bits##_t v, \
                                                    int o, int f) {                          \
    (void)o, (void)f;                                                                        \
    ACCESS_OF(bits / 8, 2, p);                                                               \
    uint##bits##_t old = *p;                                                                 \
    if (old != *expected) return *expected = old, 0;                                         \
    *p = v;                                                                                  \
    if (old != v) changed();                                                                 \
    return 1;                                                                                \
  }                                                                                          \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile uint##bits##_t *p,                \
                                                  uint##bits##_t *expected, uint##bits##_t v, \
                                                  int o, int f) {                            \
    (void)o, (void)f;                                                                        \
    ACCESS_OF(bits / 8, 2, p);                                                               \
    uint##bits##_t old = *p;                                                                 \
    if (old != *expected) return *expected = old, 0;                                         \
    *p = v;                                                                                  \
    if (old != v) changed();                                                                 \
    return 1;                                                                                \
  }                                                                                          \
  uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                 \
      volatile uint##bits##_t *p, uint##bits##_t expected, uint##bits##_t v, int o, int f) { \
    (void)o, (void)f;                                                                        \
    ACCESS_OF(bits / 8, 2, p);                                                               \
    uint##bits##_t old = *p;                                                                 \
    if (old == expected) *p = v;                                                             \
    if (old == expected && old != v) changed();                                              \
    return old;                                                                              \
  }
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)
