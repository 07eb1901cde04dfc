# After the paper's examples: two threads hand a value over by flags; safe.
shared x = 0, y = 0, ready = 0, taken = 0;
thread producer {
  x := 1;
  y := x + 1;
  ready := 1;
  assume(taken == 1);
  x := 5;
  ready := 2;
}
thread consumer {
  local l = 0;
  assume(ready == 1);
  l := x;
  assert(l == 1);
  l := l + y;
  assert(l == 3);
  taken := 1;
  assume(ready == 2);
  assert(x == 5);
}
