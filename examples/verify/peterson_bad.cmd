# Peterson's algorithm with its first two statements swapped; unsafe.
shared flag[2] = 0, turn = 0, inside = 0;
thread a, b {
  while (true) {
    turn := 1 - self;
    flag[self] := 1;
    assume(flag[1 - self] == 0 || turn == self);
    inside := inside + 1;
    assert(inside == 1);
    inside := inside - 1;
    flag[self] := 0;
  }
}
