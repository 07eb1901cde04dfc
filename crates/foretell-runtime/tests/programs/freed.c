/* A freed and reused address is another location. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  volatile long *first = malloc(sizeof *first);
  *first = 1;
  uintptr_t address = (uintptr_t)first;
  free((void *)first);
  volatile long *second = malloc(sizeof *second);
  *second = 2;
  printf("%d %ld\n", address == (uintptr_t)second, *second);
  free((void *)second);
  return 0;
}
