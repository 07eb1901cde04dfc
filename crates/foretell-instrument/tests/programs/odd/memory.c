/* Variables whose size, place or shape is unusual. */
#include <complex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

int shared[8];

/* Variable-length arrays: in the entry block, in a loop, of structs, two at once, as parameters. */
void vla_swap(char *b, size_t w) {
  char t[w];
  memcpy(t, b, w);
  memcpy(b, b + w, w);
  memcpy(b + w, t, w);
}
int vla_first(int n, int i) {
  int first[n], second[n * 2];
  first[0] = shared[0];
  second[n] = shared[1];
  return first[i] + second[i];
}
int vla_loop(int n) {
  int sum = 0;
  for (int i = 1; i < n; i++) {
    int each[i];
    each[i - 1] = shared[i & 7];
    sum += each[0];
  }
  return sum;
}
struct pair { short a; long b; };
long vla_struct(int n) {
  struct pair all[n];
  memset(all, shared[0], sizeof all);
  all[n - 1].b = shared[1];
  return all[0].a + all[n / 2].b;
}
int vla_parameter(int n, int rows[n][n]) { return rows[n - 1][shared[0] % n]; }
int vla_after_branch(int n) {
  if (shared[0] > n)
    return 1;
  char t[n];
  t[0] = shared[1];
  return t[n - 1];
}
int vla_goto(int n) {
again:;
  int t[n];
  t[0] = shared[n & 7];
  if (t[0] > 3 && n-- > 1)
    goto again;
  return t[0];
}
char *volatile keep;
int alloca_scalar(int n) {
  int *one = __builtin_alloca(4), *some = __builtin_alloca(n);
  *one = shared[0];
  some[0] = shared[1];
  for (int i = 0; i < n; i++) {
    char *loop = __builtin_alloca(1);
    *loop = shared[2];
    keep = loop;
  }
  return *one + some[0];
}
int alloca_aligned(int n) {
  int *p = __builtin_alloca_with_align(n, 512);
  p[0] = shared[0];
  return p[0];
}

/* Structs by value, large and small, returned through memory and in registers. */
struct large { int v[40]; };
struct large large_by_value(struct large x) {
  x.v[shared[0] & 7] = shared[1];
  return x;
}
struct small { int a, b; };
struct small small_by_value(struct small x, struct small y) {
  x.a += shared[0];
  y.b += shared[1];
  return (struct small){x.a + y.a, x.b + y.b};
}
struct mixed { double d; int i; };
struct mixed mixed_by_value(struct mixed m) { m.d += shared[0]; return m; }
struct small call_all(void) {
  struct large l = {{1}};
  l = large_by_value(l);
  struct mixed m = mixed_by_value((struct mixed){l.v[1], 2});
  return small_by_value((struct small){l.v[0], m.i}, (struct small){3, 4});
}
struct packed { char c; int i; long l; } __attribute__((packed));
long packed_fields(struct packed *p) { p->i = shared[0]; p->l++; return p->i + p->l; }
struct bits { unsigned a : 3, b : 11; long c : 37; };
long bit_fields(struct bits *b) { b->a++; b->b = shared[0]; b->c -= b->a; return b->c; }
union view { float f; int i; char c[4]; };
int union_views(union view *u) { u->f += 1; u->c[1] = shared[0]; return u->i; }
struct flexible { int n; int tail[]; };
int flexible_tail(struct flexible *f) { return f->tail[f->n]; }
struct empty {};
struct empty empty_by_value(struct empty e, int *p) { *p = shared[0]; return e; }

/* Numbers of odd widths. */
__int128 wide(__int128 *p) { *p = *p * shared[0] + 1; return *p >> 3; }
unsigned _BitInt(17) bits17(unsigned _BitInt(17) *p) { *p += shared[0]; return *p; }
_BitInt(129) bits129(_BitInt(129) *p) { *p -= shared[0]; return *p; }
long double extended(long double *p) { *p = *p / shared[0]; return *p; }
_Float16 half(_Float16 *p) { *p += (_Float16)1; return *p; }
double _Complex complex_numbers(double _Complex *p) { *p *= shared[0] + 2.0 * I; return *p; }
float _Complex complex_float(float _Complex *p) { return *p * *p; }
_Bool flag;
_Bool booleans(_Bool b) { flag = b ^ flag; return !flag && shared[0]; }

/* Vectors. */
typedef int four __attribute__((vector_size(16)));
typedef float eight __attribute__((vector_size(32)));
typedef char three __attribute__((ext_vector_type(3)));
typedef _Bool mask __attribute__((ext_vector_type(8)));
four vectors;
four vector_add(four v, int i) { vectors += v; vectors[i] = shared[0]; return vectors * v; }
int vector_in(four *v) { return (*v)[shared[0] & 3]; }
void vector_wide(eight *a, eight *b) { *a = *a * *b; }
three vector_three(three *t) { t->x = shared[0]; return t->zyx; }
mask vector_mask(mask *m) { return *m & ~*m; }

/* Atomics of every size. */
_Atomic(char) a1;
_Atomic(short) a2;
_Atomic(int) a4;
_Atomic(long) a8;
_Atomic(int *) ap;
_Atomic(float) af;
_Atomic(_Bool) ab;
struct three_bytes { char c[3]; };
_Atomic(struct three_bytes) a3;
struct sixteen { long a, b; };
_Atomic(struct sixteen) a16;
_Atomic(__int128) wide_atomic;
long atomics(void) {
  long sum = a1++ + a2-- + (a4 += 3) + (a8 ^= 5) + (long)ap;
  af += 1.5f;
  ab |= 1;
  struct three_bytes t = a3;
  a3 = t;
  struct sixteen s = a16;
  s.a++;
  a16 = s;
  wide_atomic += sum;
  int expected = 4;
  atomic_compare_exchange_weak(&a4, &expected, shared[0]);
  struct sixteen want = {1, 2};
  atomic_compare_exchange_strong(&a16, &want, s);
  ap = atomic_exchange(&ap, shared);
  atomic_thread_fence(memory_order_seq_cst);
  atomic_signal_fence(memory_order_acquire);
  __atomic_nand_fetch(&shared[1], 3, __ATOMIC_RELAXED);
  __sync_fetch_and_max((int *)&shared[2], 7);
  return sum + expected;
}
volatile int hardware;
int volatiles(volatile struct small *s) { s->a = hardware; return hardware++ + s->b; }

/* Other address spaces and thread-local variables. */
__thread int own = 3;
_Thread_local struct pair own_pair;
int *thread_locals(void) { own += shared[0]; own_pair.b = own; return &own; }
int segment(void) { return *(int __attribute__((address_space(257))) *)0; }
void nontemporal(int *p) { __builtin_nontemporal_store(__builtin_nontemporal_load(p) + 1, p); }
void inline_copy(char *a, char *b) { __builtin_memcpy_inline(a, b, 24); }
void overlapping(char *p, size_t n) { memmove(p + 1, p, n); memset(p, *p, n); }
size_t strings(char *a, const char *b) {
  strcpy(a, b);
  return strlen(a) + strcmp(a, b) + memcmp(a, b, strlen(b)) + (strchr(a, shared[0]) != 0);
}
void *weak_reference(void) {
  extern int missing __attribute__((weak));
  return &missing;
}

/* Variable arguments. */
long sum_all(int n, ...) {
  va_list list, again;
  va_start(list, n);
  va_copy(again, list);
  long sum = 0;
  for (int i = 0; i < n; i++)
    sum += va_arg(list, int) + (long)va_arg(list, double) + va_arg(list, struct small).b;
  struct large l = va_arg(again, struct large);
  va_end(again);
  va_end(list);
  return sum + l.v[0];
}
long pass_all(void) {
  struct large l = {{2}};
  return sum_all(1, shared[0], 2.0, (struct small){1, shared[1]}, l);
}
