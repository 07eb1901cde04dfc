/* Correct: bodies on a line that attract each other, after Barnes and Hut: near bodies one by one,
 * far ones by their cell's centre. Threads take bodies from a shared list, a barrier ends a step. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, LARGEST = 256, CELL = 4 };

static double position[LARGEST], speed[LARGEST], centre[LARGEST / CELL];
static int bodies = 8, steps = 1;
static int next_body;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t step_end;

static int take_body(void) {
  pthread_mutex_lock(&list_lock);
  int body = next_body < bodies ? next_body++ : -1;
  pthread_mutex_unlock(&list_lock);
  return body;
}

static double pull(double from, double to, double mass) {
  double distance = to - from;
  return distance == 0 ? 0 : mass * (distance > 0 ? 1 : -1) / (1 + distance * distance);
}

static void accelerate(int body) {
  double force = 0;
  for (int cell = 0; cell < bodies / CELL; cell++) {
    if (cell != body / CELL) {
      force += pull(position[body], centre[cell], CELL);
    } else {
      for (int other = cell * CELL; other < (cell + 1) * CELL; other++) {
        force += pull(position[body], position[other], 1);
      }
    }
  }
  speed[body] += force / 100;
}

static void move_all(void) {
  for (int body = 0; body < bodies; body++) position[body] += speed[body];
  for (int cell = 0; cell < bodies / CELL; cell++) {
    centre[cell] = 0;
    for (int i = 0; i < CELL; i++) centre[cell] += position[cell * CELL + i] / CELL;
  }
  next_body = 0;
}

static void *worker(void *unused) {
  for (int step = 0; step < steps; step++) {
    for (int body = take_body(); body >= 0; body = take_body()) accelerate(body);
    if (pthread_barrier_wait(&step_end) == PTHREAD_BARRIER_SERIAL_THREAD) move_all();
    pthread_barrier_wait(&step_end);
  }
  return unused;
}

int main(int count, char **arguments) {
  pthread_t threads[THREADS];
  if (count > 1) bodies = atoi(arguments[1]);
  if (bodies < CELL || bodies > LARGEST || bodies % CELL) return 2;
  for (int i = 0; i < bodies; i++) position[i] = i * i % 17 + i;
  move_all();
  pthread_barrier_init(&step_end, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  double sum = 0;
  for (int i = 0; i < bodies; i++) sum += position[i] * i;
  printf("moment %.6f\n", sum);
  return 0;
}
