/* One of every kind of operation, on values that come from global memory. */
#include <complex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int8_t g8 = -7;
uint16_t g16 = 40000;
int32_t g32 = -123456;
uint32_t gu32 = 0xdeadbeef;
int64_t g64 = -1234567890123456789;
uint64_t gu64 = 0xfedcba9876543210;
bool gbool = true;
float gfloat = 1.5f;
double gdouble = -2.25;
long double glong = 3.125L;
int *gpointer = &g32;
struct bits { unsigned a : 3, b : 7; signed c : 5; } gbits = {5, 100, -3};
struct mixed { char c; short s; int i; double d; char name[11]; } gmixed = {'x', -2, 9, 0.5, "foretell"};
struct mixed *gmixed_pointer = &gmixed;
union { float f; uint32_t u; unsigned char bytes[4]; } gunion = {.f = 3.0f};
int garray[4][5];
static _Thread_local int gthread = 11;
_Atomic uint8_t a8 = 250;
_Atomic int a32 = -5;
_Atomic uint64_t a64 = 77;
_Atomic(int *) ap = garray[0];
static int (*operation)(int, int);

static int plus(int a, int b) { return a + b; }
static int minus(int a, int b) { return a - b; }

static long variadic(int count, ...) {
  va_list list;
  va_start(list, count);
  long total = 0;
  for (int k = 0; k < count; k++) total += k % 2 ? va_arg(list, int) : va_arg(list, long);
  va_end(list);
  return total;
}

static int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }

static int many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k, int l, int m, int n) {
  return a - b + c - d + e - f + g - h + i - j + k - l + m - n;
}

static int computed(int which) {
  static void *labels[] = {&&zero, &&one, &&two};
  goto *labels[which % 3];
zero:
  return 10;
one:
  return 20;
two:
  return 30;
}

static const char *word(int n) {
  switch (n) {
  case -3: return "minus three";
  case 0: return "zero";
  case 9: return "nine";
  case 1000: return "thousand";
  default: return "other";
  }
}

static struct mixed change(struct mixed m) {
  m.i += g32;
  m.name[1] ^= 32;
  return m;
}

__attribute__((noinline)) static int by_value(struct mixed m, struct mixed *p) {
  m.i++;
  return m.i * 2 + p->i + m.name[g8 & 3];
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(void) {
  printf("%d %d %d %d\n", g8 * 3, g8 / 2, g8 % 4, g8 >> 1);
  printf("%u %u %u %u\n", g16 * 3u, g16 / 7u, g16 % 7u, g16 >> 3);
  printf("%d %d %d\n", g32 + 5, -g32, ~g32);
  printf("%lld %lld\n", (long long)(g64 / 3), (long long)(g64 % 1000));
  printf("%llu %llu\n", (unsigned long long)(gu64 << 4), (unsigned long long)(gu64 >> 60));
  printf("%u %u\n", (gu32 << 7) | (gu32 >> 25), __builtin_bswap32(gu32));
  printf("%d %d %d\n", __builtin_popcount(gu32), __builtin_clz(gu32), __builtin_ctz(gu32));
  printf("%d %d %d\n", g32 < 0, gu32 > 5u, g64 == 7);
  printf("%d %d\n", g32 > g8 ? g32 : g8, g32 < g8 ? g32 : g8);
  printf("%d %d\n", abs(g32), abs(g8));
  unsigned sum;
  printf("%d %u\n", __builtin_add_overflow(gu32, gu32, &sum), sum);
  int product;
  printf("%d\n", __builtin_mul_overflow(g32, g32, &product));
  __int128 wide = (__int128)g64 * g64;
  printf("%llx %llx\n", (unsigned long long)(wide >> 64), (unsigned long long)wide);
  gbool = !gbool;
  printf("%d %d\n", gbool, gbool ? g8 : g16);
  printf("%f %f %Lf %d\n", gfloat * 2, gdouble + g32, glong * g8, (int)gdouble);
  double complex z = gdouble + gfloat * I;
  printf("%f\n", creal(z * z));
  *gpointer += 1;
  printf("%d\n", g32);
  gbits.a++, gbits.b -= 50, gbits.c--;
  printf("%u %u %d\n", gbits.a, gbits.b, gbits.c);
  struct mixed copy = gmixed;
  copy.s = (short)(copy.s * g8);
  struct mixed changed = change(copy);
  printf("%c %d %d %f %s %d\n", changed.c, changed.s, changed.i, changed.d, changed.name, memcmp(&copy, &gmixed, 4) < 0);
  printf("%d\n", by_value(*gmixed_pointer, gmixed_pointer));
  gunion.u += 1;
  printf("%f %d\n", gunion.f, gunion.bytes[0]);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 5; j++) garray[i][j] = (g32 ^ i) % (j + 3);
  printf("%d %d\n", garray[abs(g8) % 4][gu32 % 5], garray[1][2]);
  int local[16];
  for (int i = 0; i < 16; i++) local[i] = garray[i % 4][i % 5] * i;
  memmove(local + 2, local, 8 * sizeof *local);
  memset(local + 12, g8, 2 * sizeof *local);
  qsort(local, 16, sizeof *local, compare);
  for (int i = 0; i < 16; i++) printf("%d ", local[i]);
  unsigned char bytes[8];
  uint64_t word64 = gu64;
  memcpy(bytes, &word64, 8);
  bytes[3] = (unsigned char)(bytes[2] + g8);
  memcpy(&word64, bytes, 8);
  printf("%llx\n", (unsigned long long)word64);
  int vla[abs(g8)];
  for (int i = 0; i < abs(g8); i++) vla[i] = g32 + i;
  printf("%d\n", vla[abs(g8) - 1]);
  operation = g8 < 0 ? minus : plus;
  printf("%d %d\n", operation(g32, g8), factorial(abs(g8)));
  printf("%ld\n", variadic(4, (long)g32, (int)g8, (long)g16, (int)gbits.c));
  printf("%d\n", many(g8, 1, g32, 2, 3, 4, 5, 6, 7, 8, 9, 10, g16, g8));
  printf("%d %d\n", computed(abs(g8)), computed(abs(g32)));
  printf("%s %s %s\n", word(gmixed.i), word(gbits.c + 1), word(g8));
  gthread += g8;
  printf("%d\n", gthread);
  volatile int watched = g32;
  watched++;
  printf("%d\n", watched);
  int expected = -5;
  bool swapped = atomic_compare_exchange_strong(&a32, &expected, g8);
  printf("%d %d %d\n", swapped, expected, atomic_load_explicit(&a32, memory_order_acquire));
  expected = 3;
  swapped = atomic_compare_exchange_weak_explicit(&a32, &expected, 1, memory_order_release, memory_order_relaxed);
  printf("%d %d\n", swapped, expected);
  printf("%d %llu\n", atomic_fetch_add(&a8, 10), (unsigned long long)atomic_fetch_xor(&a64, gu64));
  printf("%llu\n", (unsigned long long)atomic_exchange(&a64, gu64 >> 3));
  atomic_fetch_add(&ap, 2);
  atomic_thread_fence(memory_order_seq_cst);
  printf("%d %d\n", a8, *atomic_load(&ap));
  char text[32];
  snprintf(text, sizeof text, "%d-%s", g8, gmixed.name);
  printf("%s %zu\n", text, strlen(text));
  char *copy_of = strdup(text);
  copy_of[0] = (char)(copy_of[1] ^ 1);
  puts(copy_of);
  free(copy_of);
  return (unsigned char)g8 % 100;
}
