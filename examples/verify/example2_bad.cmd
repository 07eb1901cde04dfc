# As example2, but a flag goes down before the work is done; unsafe.
shared f = 0, g = 0, x = 0, y = 0;
thread left {
  f := 1;
  if (g == 0) {
    x := 1;
    f := 0;
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
