# Peterson's mutual exclusion, for ever; safe.
shared flag[2] = 0, turn = 0, inside = 0;
thread a, b {
  while (true) {
    flag[self] := 1;
    turn := 1 - self;
    assume(flag[1 - self] == 0 || turn == self);
    inside := inside + 1;
    assert(inside == 1);
    inside := inside - 1;
    flag[self] := 0;
  }
}
