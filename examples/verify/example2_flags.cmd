# As example2, with flags that go down at the end; safe: who comes later sees the flag until then.
shared f = 0, g = 0, x = 0, y = 0;
thread left {
  f := 1;
  if (g == 0) {
    x := 1;
    y := 1;
    assert(x == y);
  }
  f := 0;
}
thread right {
  g := 1;
  if (f == 0) {
    x := 2;
    y := 2;
    assert(x == y);
  }
  g := 0;
}
