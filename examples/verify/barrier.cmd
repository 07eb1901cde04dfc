# Nobody passes the barrier before all have come; safe.
shared came = 0, a = 0, b = 0;
thread p {
  a := 1;
  came := came + 1;
  assume(came == 2);
  assert(b == 1);
}
thread q {
  b := 1;
  came := came + 1;
  assume(came == 2);
  assert(a == 1);
}
