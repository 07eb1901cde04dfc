# Dekker's mutual exclusion; safe.
shared wants[2] = 0, turn = 0, inside = 0;
thread a, b {
  wants[self] := 1;
  while (wants[1 - self] == 1) {
    if (turn != self) {
      wants[self] := 0;
      assume(turn == self);
      wants[self] := 1;
    }
  }
  inside := inside + 1;
  assert(inside == 1);
  inside := inside - 1;
  turn := 1 - self;
  wants[self] := 0;
}
