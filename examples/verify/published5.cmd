# Five threads publish two fields each, and a flag; safe.
shared a0 = 0, b0 = 0, f0 = 0, a1 = 0, b1 = 0, f1 = 0, a2 = 0, b2 = 0, f2 = 0, a3 = 0, b3 = 0, f3 = 0, a4 = 0, b4 = 0, f4 = 0;
thread writer0 {
  a0 := 1;
  b0 := a0 + 1;
  f0 := 1;
}
thread writer1 {
  a1 := 2;
  b1 := a1 + 1;
  f1 := 1;
}
thread writer2 {
  a2 := 3;
  b2 := a2 + 1;
  f2 := 1;
}
thread writer3 {
  a3 := 4;
  b3 := a3 + 1;
  f3 := 1;
}
thread writer4 {
  a4 := 5;
  b4 := a4 + 1;
  f4 := 1;
}
thread reader {
  assume(f0 == 1 && f1 == 1 && f2 == 1 && f3 == 1 && f4 == 1);
  assert(b0 == a0 + 1);
  assert(a0 == 1);
  assert(b1 == a1 + 1);
  assert(a1 == 2);
  assert(b2 == a2 + 1);
  assert(a2 == 3);
  assert(b3 == a3 + 1);
  assert(a3 == 4);
  assert(b4 == a4 + 1);
  assert(a4 == 5);
}
