/* A numerical integral of doubles, half by each thread. Safe. */
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#define N 4
double partial[2]; 
void *half(void *arg) {
  int id = *(int *)arg;
  double h = 1.0 / N, sum = 0.0;
  for (int i = id + 1; i <= N; i += 2) { double x = h * ((double)i - 0.5); sum += 4.0 / (1.0 + x * x); }
  partial[id] = h * sum;
  return NULL;
}
int main(void) {
  pthread_t t[2]; int ids[2] = {0, 1}; double pi = 0.0;
  for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, half, &ids[i]);
  for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  for (int i = 0; i < 2; i++) pi += partial[i];
  printf("pi is about %.10f\n", pi);
  assert(fabs(pi - 3.14159) < 0.01);
  return 0;
}
