# After the paper: two threads, each works while the other's flag is down; safe.
shared f = 0, g = 0, x = 0, y = 0;
thread left {
  f := 1;
  if (g == 0) {
    x := 1;
    y := 1;
    assert(x == y);
  }
}
thread right {
  g := 1;
  if (f == 0) {
    x := 2;
    y := 2;
    assert(x == y);
  }
}
