/* Correct: a fast Fourier transform in the manner of SPLASH-2. Each thread takes a number under the
 * lock and does its share of the butterflies of every stage, with a barrier between stages. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, LARGEST = 1024 };

struct complex {
  double re, im;
};

static struct complex data[LARGEST], roots[LARGEST / 2];
static int points = 16;
static int next_number;
static pthread_mutex_t number_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t stage_end;

#ifndef OWN_TAKE_NUMBER
static int take_number(int *next, pthread_mutex_t *lock) {
  pthread_mutex_lock(lock);
  int mine = (*next)++;
  pthread_mutex_unlock(lock);
  return mine;
}
#endif

static void butterfly(struct complex *a, struct complex *b, struct complex root) {
  struct complex turned = {b->re * root.re - b->im * root.im, b->re * root.im + b->im * root.re};
  b->re = a->re - turned.re;
  b->im = a->im - turned.im;
  a->re += turned.re;
  a->im += turned.im;
}

static void do_stage(int half, int me) {
  int share = points / 2 / THREADS;
  for (int k = me * share; k < (me + 1) * share; k++) {
    int offset = k % half;
    int first = k / half * 2 * half + offset;
    butterfly(&data[first], &data[first + half], roots[offset * (points / 2 / half)]);
  }
}

static void *worker(void *unused) {
  int me = take_number(&next_number, &number_lock);
  for (int half = 1; half < points; half *= 2) {
    do_stage(half, me);
    pthread_barrier_wait(&stage_end);
  }
  return unused;
}

static void set_up(void) {
  for (int i = 0, reversed = 0; i < points; i++) {
    data[reversed].re = i % 5;
    int bit = points / 2;
    for (; bit > 0 && (reversed & bit); bit /= 2) reversed ^= bit;
    reversed |= bit;
  }
  for (int i = 0; i < points / 2; i++) {
    roots[i].re = cos(2 * M_PI * i / points);
    roots[i].im = -sin(2 * M_PI * i / points);
  }
}

int main(int count, char **arguments) {
  pthread_t threads[THREADS];
  if (count > 1) points = atoi(arguments[1]);
  if (points < 2 * THREADS || points > LARGEST || (points & (points - 1))) return 2;
  set_up();
  pthread_barrier_init(&stage_end, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  double sum = 0;
  for (int i = 0; i < points; i++) sum += data[i].re * data[i].re + data[i].im * data[i].im;
  printf("power %.3f\n", sum / points);
  return 0;
}
