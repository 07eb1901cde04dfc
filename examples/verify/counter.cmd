# Two threads count under a lock, twice each; safe.
shared c = 0, done = 0;
mutex m;
thread a, b {
  local i = 0;
  while (i < 2) {
    lock(m);
    c := c + 1;
    unlock(m);
    i := i + 1;
  }
  done := done + 1;
}
thread check {
  assume(done == 2);
  assert(c == 4);
}
