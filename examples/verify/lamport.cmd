# Lamport's fast mutual exclusion for two, once each; safe.
shared x = 0, y = 0, b[2] = 0, inside = 0;
thread p, q {
  local trying = 1;
  while (trying == 1) {
    b[self] := 1;
    x := self + 1;
    if (y != 0) {
      b[self] := 0;
      assume(y == 0);
    } else {
      y := self + 1;
      if (x != self + 1) {
        b[self] := 0;
        assume(b[1 - self] == 0);
        if (y == self + 1) { trying := 0; } else { assume(y == 0); }
      } else {
        trying := 0;
      }
    }
  }
  inside := inside + 1;
  assert(inside == 1);
  inside := inside - 1;
  y := 0;
  b[self] := 0;
}
