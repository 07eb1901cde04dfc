/* Unusual ways through a function. */
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int shared[8];
jmp_buf place;

int computed(int n) {
  static void *const labels[] = {&&zero, &&one, &&two};
  int sum = 0;
  goto *labels[shared[0] % 3];
zero:
  sum += shared[1];
  if (n-- > 0)
    goto *labels[n % 3];
one:
  sum -= shared[2];
  if (n-- > 0)
    goto *labels[shared[3] % 3];
two:
  return sum;
}

int jump_back(int n) {
  volatile int tries = 0;
  int scratch[n];
  scratch[0] = shared[0];
  if (setjmp(place))
    tries++;
  if (tries < shared[1])
    longjmp(place, tries + 1);
  return tries + scratch[0];
}
int builtin_jump(void) {
  static void *buffer[5];
  if (__builtin_setjmp(buffer))
    return shared[0];
  shared[1]++;
  __builtin_longjmp(buffer, 1);
}

int assembler(int n) {
  int out = n;
  __asm__ volatile("addl %1, %0" : "+r"(out) : "r"(shared[0]) : "cc", "memory");
  __asm__("" : "+m"(shared[1]));
  struct { long a, b; } two;
  __asm__("movq %2, %0\n movq %2, %1" : "=r"(two.a), "=r"(two.b) : "r"((long)shared[2]));
  return out + two.a + two.b;
}
int assembler_goto(int n) {
  __asm__ goto("testl %0, %0\n jne %l1" : : "r"(shared[0]) : "cc" : other);
  return n + shared[1];
other:
  return n - shared[2];
}
int assembler_goto_output(int n) {
  int out;
  __asm__ goto("movl %1, %0\n testl %1, %1\n jne %l2" : "=r"(out) : "r"(shared[0]) : "cc" : other);
  shared[1] = out;
  return out + n;
other:
  return out - shared[2];
}

int dense_switch(int n) {
  switch (shared[0]) {
  case 0: return n;
  case 1: n += shared[1]; /* falls through */
  case 2 ... 40: return n + 1;
  case 1000000: return shared[2];
  default: return -1;
  }
}
int wide_switch(unsigned __int128 n) {
  switch (n) {
  case 1: return shared[0];
  case ((unsigned __int128)1 << 100): return shared[1];
  default: return 0;
  }
}
int narrow_switch(_Bool b, unsigned _BitInt(3) n) {
  switch (n) {
  case 1: return b;
  case 7: return shared[b];
  }
  return 0;
}

/* Tail calls that must be ones. */
int even(int n);
int odd(int n) {
  if (n == 0)
    return shared[0];
  __attribute__((musttail)) return even(n - 1);
}
int even(int n) {
  shared[1]++;
  if (n == 0)
    return 1;
  __attribute__((musttail)) return odd(n - 1);
}
int (*table[2])(int) = {even, odd};
int tail_through_pointer(int n) {
  int got = shared[n & 7];
  __attribute__((musttail)) return table[got & 1](got);
}

/* Other names and other linkage. */
int original(int n) { return n + shared[0]; }
int other_name(int n) __attribute__((alias("original")));
extern int weak_name(int n) __attribute__((weak, alias("original")));
__attribute__((weak)) int weak_body(int n) { return shared[n & 7]; }
static int chosen_body(int n) { return n * shared[0]; }
static int (*choose(void))(int) { return chosen_body; }
int chosen(int n) __attribute__((ifunc("choose")));
int call_names(int n) { return other_name(n) + weak_name(n) + weak_body(n) + chosen(n); }
inline int inline_only(int n) { return n + shared[1]; }
extern inline __attribute__((gnu_inline, always_inline)) int gnu(int n) { return n + shared[2]; }
int call_inline(int n) { return inline_only(n) + gnu(n); }
__attribute__((naked)) int bare(void) { __asm__("xorl %eax, %eax\n ret"); }
__attribute__((cold, noinline, noclone)) int cold_path(int n) { return shared[n & 7]; }
__attribute__((constructor(150))) static void begin(void) { shared[5] = 1; }
__attribute__((destructor)) static void end(void) { shared[5] = 0; }
__attribute__((noreturn)) void stop(int n) { if (shared[0]) exit(n); __builtin_trap(); }
__attribute__((ms_abi)) int windows(int a, int b, int c, int d, int e) { return a + e + shared[d]; }
int call_windows(void) { return windows(1, 2, 3, shared[0], 5); }
__attribute__((regcall)) int registers(int a, double b) { return a + b + shared[0]; }
__attribute__((preserve_most)) void kept(int n) { shared[n & 7]++; }
__attribute__((vectorcall)) float by_vector(float a) { return a + shared[0]; }
__attribute__((target("avx2"))) int with_target(int n) { return n + shared[0]; }
__attribute__((target_clones("avx2", "default"))) int clones(int n) { return n * shared[1]; }
__attribute__((no_sanitize("thread"))) int unwatched(void) { return shared[0]; }
__attribute__((cleanup(kept))) static int *unused;
static void release(int *p) { shared[0] += *p; }
int cleaned(int n) { __attribute__((cleanup(release))) int local = shared[n & 7]; return local + 1; }

/* The program has its own idea of functions of the library. */
size_t strlen_of(const char *s) { size_t n = 0; while (s[n]) n++; return n + shared[0]; }
int nested(int n) {
  int f = ({ int g = shared[0]; g + n; });
  return f ?: shared[1];
}
int overflow(int a, int b) {
  int r;
  if (__builtin_add_overflow(a, shared[0], &r) || __builtin_mul_overflow(r, b, &r) ||
      __builtin_sub_overflow(r, shared[1], &r))
    return -1;
  return r;
}
unsigned intrinsics(unsigned n) {
  unsigned c, o;
  o = __builtin_addc(n, shared[0], 0, &c);
  return o + c + __builtin_popcount(shared[1]) + __builtin_clz(shared[2] | 1) + __builtin_bswap32(n) +
         __builtin_rotateleft32(shared[3], n) + __builtin_expect(shared[4], 0) +
         __builtin_bitreverse32(shared[5]) + (unsigned)(uintptr_t)__builtin_return_address(0) +
         __builtin_elementwise_max(shared[6], 3) + __builtin_object_size(&shared, 0) +
         (unsigned)__builtin_readcyclecounter();
}
void assumed(int *p) { __builtin_assume(*p > 0); *p = __builtin_unpredictable(shared[0]); }
void never(void) { if (shared[0]) __builtin_unreachable(); shared[1] = 1; }
int unreachable_code(void) {
  return shared[0];
  int dead[shared[1]];
  return dead[0];
}
void spin(void) { while (shared[0]) ; }
void for_ever(void) { for (;;) shared[0]++; }
void nothing(void) {}
int old_style() { return shared[0]; }
int call_old_style(void) { return old_style(1, 2.0, shared); }
int old_definition(a, b) short a; float b; { return a + b + shared[0]; }
void printed(FILE *f) { fprintf(f, "%d %s\n", shared[0], __func__); }
double floats(double a, float b) {
  shared[0] = a < b ? (int)a : (int)b;
  return __builtin_fma(a, b, shared[1]) + __builtin_fabs(a) + (a != a) + (long double)b;
}
