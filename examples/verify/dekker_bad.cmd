# Mutual exclusion by flags that are raised too late; unsafe.
shared wants[2] = 0, inside = 0;
thread a, b {
  assume(wants[1 - self] == 0);
  wants[self] := 1;
  inside := inside + 1;
  assert(inside == 1);
  inside := inside - 1;
  wants[self] := 0;
}
